"""The plugin NodeResourcesFit: which nodes have room for the pod, and which should be filled first.

`shortage` says what is lacking where, `strategies` what a load is worth, `hints` which events give
room; `plugin` ties them to the framework.
"""

from kubestow.plugins.node_resources_fit.plugin import NodeResourcesFit

__all__ = ["NodeResourcesFit"]
