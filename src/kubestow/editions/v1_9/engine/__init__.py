"""The cycle of v1.9.

`algorithm` turns a Policy into rules, `decide` makes the decisions, `equivalence_cache` reuses
verdicts as v1.9 could, `extenders` calls extenders, `scheduler` has the loop around them.
"""
