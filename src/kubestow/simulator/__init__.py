"""A whole cluster in memory on a virtual clock.

Workloads, traces, faults, checkers and reports, repeatable from a seed. The scheduler in it is the
same code that the service runs; only the clock and the API server differ.
"""
