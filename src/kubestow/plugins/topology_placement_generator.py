"""One placement per value of a node label, for groups that must stay together (spec 11 §8.1)."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from kubestow.api.meta import object_ref
from kubestow.api.pod import Pod
from kubestow.errors import CacheError, PluginError
from kubestow.framework.group_cycle import GroupCycle, GroupPlacement
from kubestow.framework.handle import Handle
from kubestow.index.nodes import nodes_of


class TopologyPlacementGenerator:
    name: ClassVar[str] = "TopologyPlacementGenerator"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        self._groups = handle.groups
        self._snapshot = handle.snapshot

    def generate_placements(
        self, cycle: GroupCycle, parent: GroupPlacement
    ) -> Sequence[GroupPlacement]:
        key = self._groups.required_rules(cycle.key).topology_key
        if key is None:
            return [parent]
        cycle.known_members()  # a group that is not known is an error
        scheduled = cycle.scheduled_pods()
        required = None
        if scheduled:
            try:
                required = self._domain_of(scheduled, key)
            except CacheError as error:
                raise PluginError(
                    f"cannot determine domain for already scheduled pods: {error}"
                ) from error
        return self._placements(parent, key, required)

    def _placements(
        self, parent: GroupPlacement, key: str, required: str | None
    ) -> list[GroupPlacement]:
        nodes = nodes_of(self._snapshot, parent.rows)
        ids, values = nodes.label_ids(key), nodes.label_values(key)
        # Upstream's order is random. Byte order equals code point order in UTF-8.
        domains = sorted(
            (value, number)
            for number, value in enumerate(values)
            if value is not None and (required is None or value == required)
        )
        found = [
            GroupPlacement(value, parent.rows[np.flatnonzero(ids == number)])
            for value, number in domains
        ]
        return [placement for placement in found if len(placement.rows)]

    def _domain_of(self, pods: Sequence[Pod], key: str) -> str:
        """The domain in which all of these run; CacheError if there is none, or more than one."""
        domain = ""
        for pod in pods:
            name = object_ref(pod.metadata)
            row = self._snapshot.row_of(pod.spec.node_name)
            if row is None:
                raise CacheError(
                    f"getting node for pod {name}: "
                    f'nodeinfo not found for node name "{pod.spec.node_name}"'
                )
            found = self._snapshot.nodes[row].metadata.labels.get(key)
            if found is None:
                raise CacheError(f"no topology domain found for pod {name}")
            if domain and domain != found:
                raise CacheError(f"more than 1 domain found for pod group: {domain}, {found}")
            domain = found
        return domain
