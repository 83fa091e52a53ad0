"""Which driver attaches no more volumes, or is not there (NodeVolumeLimits)."""

from collections import Counter

from kubestow.explain.evidence.context import NodeView
from kubestow.explain.evidence.facts import Driver, VolumeLimit
from kubestow.plugins.node_volume_limits import NodeVolumeLimits


def too_many_volumes(view: NodeView, _: str) -> list[VolumeLimit]:
    plugin = view.context.plugin(NodeVolumeLimits)
    if plugin is None:
        return []
    wanted, node = plugin.volumes_on(view.pod.pod, view.info)
    added = Counter(driver for name, driver in wanted.items() if name not in node.volumes)
    return [
        VolumeLimit(
            driver=driver,
            used=node.counts.get(driver, 0),
            limit=node.limits[driver],
            added=count,
            missing=count - node.free(driver),
        )
        for driver, count in added.items()
        if driver in node.limits and count > node.free(driver)
    ]


def driver_missing(_: NodeView, reason: str) -> list[Driver]:
    return [Driver(driver=reason.partition(" CSI driver")[0])]
