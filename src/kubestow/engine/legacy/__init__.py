"""Deciding as older schedulers did, beside the engine of today.

`algorithm` turns a Policy into rules, `decide_v1_9` makes the decisions, `equivalence_cache` is the
ancestor of sharing work between equal pods, `extenders_v1_9` asks servers beside the scheduler.
Cache, snapshot and stores are the engine's own.
"""
