"""`kubestow compare`: one input under several schedulers."""
