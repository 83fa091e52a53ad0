"""How much room a cluster has: what fits, what is needed, what could go.

Every answer comes from placing pods with the scheduler itself in a cluster in memory, never from
arithmetic. Pods are placed, but none is evicted for another.
"""
