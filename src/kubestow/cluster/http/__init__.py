"""The client of a real API server: HTTP/1.1 directly on asyncio, without an HTTP library.

A scheduler that binds 500 pods a second sends 1,000 small requests a second. A general HTTP client
spends more time on each than the scheduler spends on the pod, so this folder implements the part
of HTTP it needs. From the wire up:

    wire            bytes to responses (pure)
    tls, proxy      how a connection is secured and routed
    connection      one connection; `pool` keeps several for use and reuse
    credentials     the client's identity: tokens, plugins, certificates
    kubeconfig      where the server is, read from a file or found inside a cluster
    rate_limit      how many requests a second
    error_response  an error response, as an `ApiError`
    session         one request with everything above, repeated where that is safe
    watch_stream    the frames of a watch as typed events
    http_client     the `ClusterClient`
"""
