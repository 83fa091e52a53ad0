"""The only code that talks to an API server.

`client` is the interface the engine reads and writes through; `http` speaks it to a real server.
`informer` keeps stores of objects up to date over it; `events` records what happened to pods;
`election` lets only one of several schedulers work.

Other folders import the modules themselves; nothing is re-exported.
Not here: the embedded API server, which answers the same client from memory (`apiserver`).
"""
