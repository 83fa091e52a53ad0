"""Which pods to evict, in which order, so that a figure of the cluster gets better.

    documents ──► ground ──► board ◄── search ──► plan ──► table, JSON, YAML, script, `--run`
                   │           │ evict, place again, undo
                   │           └── goals: a figure, kept up to date pod by pod
                   └── rules (which pods stay, and why), budgets (what may be down now)

ground    the cluster as it is, every pod on its node, and what is known of each pod beside it
rules     the reasons for which a pod stays; a pod without a reason may be evicted
surging   pods that cannot be spared: one more is brought up first, where that is certain
gangs     members of groups: evicted together, or not at all
board     evicts one pod after the other and places its replacement with the scheduler's own
          decision, on the state that the steps before left; every step can be undone
goals     figures over pods and nodes. Each has `take` and `put`, which are exact inverses
search    looks for steps: all sequences in small clusters, else the best step with a look-ahead
          (`climbing`), and whole nodes at a time where nodes shall become empty (`clearing`)
proving   whether the rest of a plan still holds on a cluster that was read again
carrying_out   does the steps on a server, one at a time, and ends at the first surprise
surge_run      those of them that scale a controller up and down
plan      the steps with where each replacement goes, the figure before and after, and their times
descheduler  what a policy of the descheduler would do on the same board

A step is one eviction; those of a gang are done as one. A replacement is decided when its
controller makes it: that of a ReplicaSet while the pod is still ending on its node, that of a
StatefulSet once it is gone. A pod whose replacement would come back to the same node, or find none,
is not evicted. Steps follow one another: the next eviction waits until the replacement is ready, so
at most one pod or gang of a plan is down at any moment, and each eviction is one that the budgets
allow then.

A pod is moved once in a plan. Nodes are closed (cordoned) only by `clearing`, and each closing and
opening is a step of its own.

Not here: the requests to a server (`kubestow.service.commands.rebalance`).
"""

from kubestow.simulator.rebalance.goals.reading import read_goal
from kubestow.simulator.rebalance.options import RebalanceOptions
from kubestow.simulator.rebalance.plan import RebalancePlan
from kubestow.simulator.rebalance.planning import make_plan

__all__ = ["RebalanceOptions", "RebalancePlan", "make_plan", "read_goal"]
