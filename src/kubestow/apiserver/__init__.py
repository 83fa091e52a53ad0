"""An API server in memory, for simulations, tests and `kubestow demo`.

    memory           the server: verbs, subresources and errors as a real one has them
    watched_objects  what it stores: all resources under one version, with lists and watches
    store, watch     versions of objects, and the events of each watch
    served           which resources there are, under which names and versions
    schema           the fields of all kinds: types, unknown fields, how lists merge
    custom           resources that a CustomResourceDefinition makes
    versions         kinds that are served in more than one version
    writes           what happens to a write before it is stored: patches, defaults, validation
    controllers      what a real cluster runs beside its API server to delete objects
    http             the same server over HTTPS, for kubectl and client libraries

`memory_client` implements `cluster.client.ClusterClient` on it, so that everything above works as
with a real cluster. `kubestow run` never imports this folder.
"""
