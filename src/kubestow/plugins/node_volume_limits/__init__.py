"""NodeVolumeLimits: no more volumes on a node than its CSI drivers can attach (spec 07 §5).

`pod_volumes` finds the CSI volumes of a pod, `attached` keeps what is attached to each node,
`plugin` compares both with the limits.
"""

from kubestow.plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
