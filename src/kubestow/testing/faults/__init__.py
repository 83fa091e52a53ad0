"""The whole service under faults, in virtual time, from a seed.

    seed ─► plan (what happens when) ─► run: replicas, cluster, faults ─► broken invariants
              ▲                                                              │
              └── shrink: leave parts of the plan out while it still breaks ◄─┘

`plan` makes and names the actions, `replicas` runs several schedulers on one event loop so that one
can be paused or killed, `client` is where faults reach them, `simulation` carries out a plan and
`invariants` judges it. `python -m kubestow.testing.faults --help` runs seeds.
"""
