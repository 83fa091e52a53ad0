"""The only code that talks to an API server, and an API server that lives in memory.

`client` is the interface the engine writes and reads through; `informer` keeps stores of objects up
to date over it; `events` records what happened to pods; `election` sees to it that only one of
several schedulers works. `http` is the client of a real server. `memory` is the embedded API
server: the same verbs, errors, watches and subresources as a real one, with `admission` doing what
a real one does to an object before a scheduler sees it.

Other folders import the modules themselves; nothing is re-exported, so that using the client does
not load the embedded server.
"""
