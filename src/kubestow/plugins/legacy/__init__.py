"""The rules of the v1.9 scheduler: predicates that say yes or no, priorities that score 0 to 10.

They are the ancestors of the plugins beside this folder and stay apart from them: another contract
(`contract`), other numbers and other words. They read the same snapshot, columns and counts.

`predicates` and `priorities` hold one small module per rule, `registry` knows them by the names a
Policy uses, `pod` reads a pod the way v1.9 did.
"""
