"""An API server that lives in memory, for simulations, tests and `kubestow demo`.

    memory        the server: verbs, subresources, watches and errors as a real one has them
    store, watch  versions of objects, and who is sent which change
    writes        what happens to a write before it is stored: patches, defaults, validation
    controllers   what a real cluster runs beside its API server to delete what has to go
    http          the same server over HTTPS, for kubectl and client libraries

`memory_client` answers `cluster.client.ClusterClient` from it, so that everything above cannot tell
it from a real cluster. `kubestow run` never imports this folder.
"""
