"""The scheduler as an environment of Gymnasium, and a policy that is learned in it.

workload      clusters and pods that arrive, made from a seed
environment   `SchedulingEnv`: one pod at a time, placed on the node of the action
policy        a score for each node, computed from what is observed
train         finds the weights of the policy
plugin        the policy as a Score plugin of the scheduler
evaluate      compares it with other ways to choose, and writes the table of README.md
"""

from gymnasium import register

register("kubestow/Scheduling-v0", entry_point="learning.environment:SchedulingEnv")
