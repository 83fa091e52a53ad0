"""The embedded API server over HTTP: a `MemoryCluster` behind the protocol of a real one.

kubectl, client libraries and kubestow itself use it as they use any cluster. `server` has the
sockets, TLS and tokens; `routing` parses paths; `verbs` and `subresources` handle requests;
`streaming` sends watches; `discovery` and `openapi` list what is served; `table` and `columns` make
what `kubectl get` prints; `failures` puts errors into `Status` objects.

Only `server` and `streaming` depend on HTTP: elsewhere requests are structs, answers are bytes.
"""
