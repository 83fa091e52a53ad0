"""Pod affinity and anti-affinity, in both directions (spec 06 §6.2).

`terms` turns the incoming pod's terms into measures, `filtering` and `scoring` compare these, and
the terms of running pods, with the counts of `index.topology`; `hints` handles events.
"""

from kubestow.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
