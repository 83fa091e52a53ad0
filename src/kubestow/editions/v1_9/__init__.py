"""The scheduler of v1.9: predicates and priorities, a FIFO, retries by time."""
