"""NodeVolumeLimits: no more volumes on a node than its CSI drivers can attach (spec 07 §5).

`pod_volumes` says which CSI volumes a pod's volumes are, `attached` keeps what is attached to each
node, `plugin` compares both with the limits.
"""

from kubestow.plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
