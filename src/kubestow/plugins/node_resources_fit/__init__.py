"""The plugin NodeResourcesFit: which nodes have enough resources for the pod, and their scores.

`shortage` finds what is lacking, `strategies` score the load, `hints` handle events; `plugin` is
what the framework calls.
"""

from kubestow.plugins.node_resources_fit.plugin import NodeResourcesFit

__all__ = ["NodeResourcesFit"]
