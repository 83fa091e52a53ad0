"""The page: what a browser shows of a running scheduler, and the stream of changes behind it.

It reads the scheduler's own objects and decides nothing: verdicts and texts come from `explain`.
`protocol` has what is sent, `follower` reads the scheduler, `hub` serves readers, `routes` are the
paths. What a demo adds (forms, time that can be paused) is given to it as `Actions`.
"""
