"""Older schedulers, beside the engine of today.

`algorithm` turns a Policy into rules, `decide_v1_9` makes the decisions, `equivalence_cache` reuses
verdicts as v1.9 could, `extenders_v1_9` calls extenders. Cache, snapshot and stores are those of
the engine. `factory` builds the schedulers of v1.17 and v1.20 from today's parts and a few of their
own. This folder is imported only when an older version is to run.
"""
