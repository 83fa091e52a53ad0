"""Deciding as older schedulers did, beside the engine of today.

`algorithm` turns a Policy into rules, `decide_v1_9` makes the decisions, `equivalence_cache` is the
ancestor of sharing work between equal pods, `extenders_v1_9` asks servers beside the scheduler.
Cache, snapshot and stores are the engine's own. `factory` builds the schedulers of v1.17 and v1.20
from today's parts and a few of their own. Only a command that is asked for an older version imports
this folder.
"""
