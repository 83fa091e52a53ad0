"""Schedules groups of pods: all members of one cycle on one snapshot (spec 11 §7).

pop ──► collect ──► trial of all members ──► preemption for all ──► submit ──► condition
           │             │                        │                   │
      siblings from    one placement           units of victims   each member is placed
      the queue        after the other                            or goes back

collect     who takes part
trial       places members on the snapshot, one after the other, and undoes it
placements  a trial for each set of nodes, and the choice among those that fit
outcome     what a trial found
submit      what happens to each member
condition   what the group's object says
cycle       all of it, in order
"""
