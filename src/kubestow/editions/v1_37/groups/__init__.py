"""The state of groups, and trials on the snapshot, as v1.37 has them (spec 12 §13)."""
