"""What simulated pods really use, and what follows for nodes and pods.

    curves, series ──► demand of each pod ──► sharing ──► use and lost CPU of each node ──► totals
                                                 └──────► pressure ──► evictions

plan        what a scenario says about usage (`UsagePlan`)
curves      use as a function of time: constant, daily, bursts, peaks
series      use from a trace: steps in time for each pod
demand      the running pods as columns, and what each asks for at a time
sharing     CPU of a node, shared by requests as control groups do
pressure    which pods a kubelet evicts for memory
totals      sums, percentiles and rows for results
measuring   measurements that schedulers can read, at intervals and late
engine      the part of a running cluster that does all this every few virtual seconds

Not here: how it is written in a scenario (`scenario.usage_reading`).
"""
