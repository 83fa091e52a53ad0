"""What a policy of the descheduler would do: which pods it evicts, and where these really go.

    policy ──► rounds ◄── strategies: which pods, by the rules of each plugin of the descheduler
                 │ ◄──── evictor: which of them its filters and limits let go
                 └─► board: evicts them, and places the replacements with the scheduler's decision

policy      `descheduler/v1alpha2` as data; plugins that are not known here are named
view        nodes and pods as the descheduler sees them at the start of a round
evictor     the rules of DefaultEvictor, disruption budgets and the limits of a round
strategies  one function for each plugin, which offers pods to the evictor in its order
judging     round after round: the same policy on what the round before left
judgement   the result as a value

A round takes its decisions on the cluster as it was at its start; its evictions are carried out one
after the other, each replacement placed before the next pod goes. A descheduler that is slower or
faster than the controllers meets another order.
"""
