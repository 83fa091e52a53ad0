"""Checks of `kubestow rebalance` on random clusters: what a plan foretells, and how good it is.

    python -m tools.rebalance --clusters 1000

clusters      small random clusters, each from a seed
virtual_run   carries a plan out in virtual time with all controllers, and compares
brute_force   the best figure of all sequences of a few moves
openb         the trace openb half full, beside first-fit-decreasing: figures of the guide
"""
