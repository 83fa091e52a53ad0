"""Schedules groups of pods, and trees of groups, as v1.37 does (spec 12 §15 to §17).

pop ──► checks ──► trial of all members ──► PodGroupPostFilter ──► submit ──► condition

checks      what is refused before the first member is tried
tree        the members of the cycle, by group, and what was found for them
trial       places them on the snapshot, group by group, and undoes it
post_filter what is evicted or given back for a group that does not fit
submit      what happens to each member
cycle       all of it, in order
"""
