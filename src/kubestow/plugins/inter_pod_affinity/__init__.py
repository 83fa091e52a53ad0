"""Pod affinity and anti-affinity, in both directions (spec 06 §6.2).

`terms` says what the incoming pod's terms ask for, `filtering` and `scoring` compare that, and what
running pods ask for, with the counts of `_shared.topology_counts`; `hints` wakes waiting pods.
"""

from kubestow.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
