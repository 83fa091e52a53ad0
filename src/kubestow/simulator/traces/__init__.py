"""Readers of traces: files that say which pods arrived when, for how long, and on which nodes.

A reader makes a `Scenario` of them, which is run as any other: the nodes are its cluster, the pods
its arrivals. `openb` reads the format of Alibaba's GPU cluster trace of 2023, `alibaba` that of its
trace of 2018, `azure` that of Azure's virtual machines of 2019, `plain` CSV files of documented
columns. `use_files` reads what the pods of a trace used.
"""
