"""Checks one plugin by itself, before it gets near a cluster: `kubestow plugin check`.

loading     the plugin, made as a configuration makes it
signatures  whether its methods can be called as the framework calls them
generated   pods, nodes and changes to try it with
answers     whether it answers the same one node at a time, in another order, and again
in_a_row    whether it sees the pods that were placed just before
reuse       whether its declaration of reuse changes no decision
check       all of it, how long it takes per node, and what was found
"""

from kubestow.testing.plugin_check.check import PluginReport, check_plugin

__all__ = ["PluginReport", "check_plugin"]
