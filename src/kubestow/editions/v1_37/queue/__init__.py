"""The queue of v1.37: pods one by one, and groups as one entity."""
