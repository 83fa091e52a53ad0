"""One input under several schedulers: the same cluster and arrivals with other configurations,
plugins or versions, for many seeds.

    task        what is sent to a worker and what comes back, as JSON
    work        runs one task; the same function in a copy of this process and on a Dask worker
    schedulers  the scheduler of a variant
    pool, dask_cluster  where tasks run
    sweep       all tasks in a fixed order, what failed, and the choices of pods that moved
    moved       which pod of one run is which of the other, which went elsewhere, and why
    comparison  the result: figures with intervals, moved pods, failures
"""
