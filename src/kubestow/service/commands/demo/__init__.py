"""`kubestow demo`: a cluster in one process."""
