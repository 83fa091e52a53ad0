"""The embedded API server over HTTP: a `MemoryCluster` behind the protocol of a real one.

kubectl, client libraries and kubestow itself talk to it as they talk to any cluster. `server` is
the door (sockets, TLS, tokens); `routing` says what an address means; `verbs` and `subresources` do
it; `streaming` sends watches; `discovery` and `openapi` tell clients what there is; `table` and
`columns` make what `kubectl get` prints; `failures` puts refusals into `Status` objects.

Nothing below `server` and `streaming` knows HTTP: requests are structs, answers are bytes.
"""
