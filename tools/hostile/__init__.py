"""The largest and most awkward objects that an API server accepts, and what they cost other pods.

`python -m tools.hostile` runs the whole service against an API server in another
process, creates ordinary pods at a steady rate, adds one hostile object after the other at two
sizes, and measures how long the scheduler serves nothing else.

    objects      the objects, by name and size
    products     two of them that a rule compares
    devices      those that need devices
    cluster      the other process: the API server, the ordinary pods, the lease
    stretches    the longest stretch of the scheduler's loop
    run          one run, and its report
    table        the report as a table of docs/reliability.md
"""
