"""Spreads pods evenly over topology domains (spec 06 §6.3).

`constraints` finds the constraints of a pod, its own or the profile's; `filtering` and `scoring`
compare them with the counts of `index.topology`; `hints` handles events.
"""

from kubestow.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
