"""DefaultPreemption for groups and against them, as of v1.37 (spec 12 §9.4, §16)."""
