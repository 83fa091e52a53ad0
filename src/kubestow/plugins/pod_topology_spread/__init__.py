"""Spreads pods evenly over topology domains (spec 06 §6.3).

`constraints` says which constraints a pod has, its own or the profile's; `filtering` and `scoring`
compare them with the counts of `_shared.topology_counts`; `hints` wakes waiting pods.
"""

from kubestow.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
