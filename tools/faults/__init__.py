"""The whole service under faults, in virtual time, from a seed.

    seed ─► plan (what happens when) ─► run: replicas, cluster, faults ─► broken invariants
              ▲                                                              │
              └── shrink: leave parts of the plan out while it still breaks ◄─┘

`plan` makes and names the actions, `simulation` carries them out. `replicas` runs several
schedulers on one event loop so that one can be paused or killed, `replica` is one of them. Faults
(`fault`) reach it by its requests and watches (`client`, or `wire` with HTTP as bytes), its plugin,
its extender and the provisioner of volumes; `moments` lets something happen at one step of an
attempt. `invariants` and `quiet` judge, `coverage` counts which faults met which states.
`python -m tools.faults --help` runs seeds.

A new kind of object in the workload needs a shape and an action in `plan`, a document in
`documents`, and a method in `simulation`.
"""
