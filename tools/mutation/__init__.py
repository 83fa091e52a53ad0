"""Do the tests notice when one operator of the scheduler is wrong?

    sources ─► sites (every change of one operator) ─► a sample of them, from a seed
    tests   ─► reach (which test runs which statement)          │
                     └──────────► trial: one change in a copy, the tests that run it
                                                                │
                                  found, or in the list of survivors ◄┘

`python -m tools.mutation --sample 200 --seed 1` (make mutate) runs a sample. What
survives needs a test, or is equivalent, or is code that nothing needs.
"""
