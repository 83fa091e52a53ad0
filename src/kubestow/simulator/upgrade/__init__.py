"""What another version of Kubernetes changes on a cluster: two editions, side by side.

pair            the cluster of a user under both editions
aspects         what differs between two decisions on one pod
noted           pods that a change is about
causes          which change of the table of the versions made it
devices         which devices a pod gets
decisions       all waiting pods, in their order
configuration   gates and configuration files that are refused or read in another way
own_plugins     plugins of the user, and the events that they wait for
objects         objects that lose their API version, or are completed in another way
search          files that use names which differ
report          the result; markdown   the result for a ticket
"""
