"""A long run in real time: does anything grow, stall or come late? (`kubestow bench soak`)

The whole service runs in this process against the embedded API server, while nodes and pods of
ever new shapes come and go.

    churn      what happens to the cluster
    gauges     what is read of the process: memory, the sizes of caches and queues
    spread     durations as percentiles, in constant memory
    soak       one run, and its report
"""
