"""The only code that talks to an API server.

`client` is the interface the engine reads and writes through, `requests` what it sends; `http`
implements it for a real server. `informer` keeps stores of objects up to date; `events` records
events; `election` ensures that only one of several schedulers works.

Other folders import the modules themselves; nothing is re-exported.
Not here: the embedded API server, which answers the same client from memory (`apiserver`).
"""
