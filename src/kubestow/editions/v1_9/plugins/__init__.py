"""The rules of the v1.9 scheduler: predicates that filter, priorities that score 0 to 10.

They are separate from the plugins of v1.36: another contract (`contract`), other numbers and other
texts. They read the same snapshot, columns and counts.

`predicates` and `priorities` have one small module per rule, `registry` has them by the names a
Policy uses, `pod` reads a pod the way v1.9 did.
"""
