"""`kubestow run`: the scheduler of a cluster."""
