"""One placement per value of a node label, for groups that must stay together (spec 11 §8.1).

By choice a group also prefers narrow domains: first those of the level that it prefers, then those
of each wider one, in the end what is required.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from kubestow.api.meta import object_ref
from kubestow.api.pod import Pod
from kubestow.errors import CacheError, PluginError
from kubestow.framework.group_cycle import GroupCycle, GroupPlacement
from kubestow.framework.handle import Handle
from kubestow.index.nodes import nodes_of

# Between the labels of a domain that has several; no label value contains it.
_SEPARATOR: Final = "/"


class TopologyPlacementGenerator:
    name: ClassVar[str] = "TopologyPlacementGenerator"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        self._groups = handle.groups
        self._snapshot = handle.snapshot

    def generate_placements(
        self, cycle: GroupCycle, parent: GroupPlacement
    ) -> Sequence[GroupPlacement]:
        rules = self._groups.required_rules(cycle.key)
        key, preferred = rules.topology_key, rules.preferred_domains
        if key is None and not preferred:
            return [parent]
        cycle.known_members()  # a group that is not known is an error
        scheduled = cycle.scheduled_pods()
        required = None
        if scheduled and key is not None:
            try:
                required = self._domain_of(scheduled, rules.required_domain or (key,))
            except CacheError as error:
                raise PluginError(
                    f"cannot determine domain for already scheduled pods: {error}"
                ) from error
        found: list[GroupPlacement] = []
        for tier, keys in enumerate(preferred):
            found += self._preferred(parent, keys, scheduled, tier)
        if key is None:
            return [*found, parent._replace(tier=len(preferred))]
        keys = rules.required_domain or (key,)
        return [*found, *self._placements(parent, keys, required, len(preferred))]

    def _preferred(
        self, parent: GroupPlacement, keys: tuple[str, ...], scheduled: Sequence[Pod], tier: int
    ) -> list[GroupPlacement]:
        """Domains that a group should not leave; none if its members are in several already."""
        try:
            domain = self._domain_of(scheduled, keys) if scheduled else None
        except CacheError:
            return []
        return self._placements(parent, keys, domain, tier)

    def _placements(
        self, parent: GroupPlacement, keys: tuple[str, ...], required: str | None, tier: int
    ) -> list[GroupPlacement]:
        nodes = nodes_of(self._snapshot, parent.rows)
        values = [nodes.label_values(key) for key in keys]
        # int64[domain, label], and for each node its domain.
        ids = np.stack([nodes.label_ids(key) for key in keys], axis=1)
        domains, of_node = np.unique(ids, axis=0, return_inverse=True)
        named: list[tuple[tuple[str, ...], int]] = []
        rows: list[list[int]] = domains.tolist()
        for number, row in enumerate(rows):
            labels = [values[column][entry] for column, entry in enumerate(row)]
            # Nodes without the label itself are in no domain; wider levels may be missing.
            if labels[-1] is not None:
                named.append((tuple(label or "" for label in labels), number))
        # Upstream's order is random. Byte order equals code point order in UTF-8.
        found = [(_SEPARATOR.join(labels), number) for labels, number in sorted(named)]
        return [
            GroupPlacement(name, parent.rows[np.flatnonzero(of_node == number)], tier)
            for name, number in found
            if required is None or name == required
        ]

    def _domain_of(self, pods: Sequence[Pod], keys: tuple[str, ...]) -> str:
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
            labels = self._snapshot.nodes[row].metadata.labels
            if keys[-1] not in labels:
                raise CacheError(f"no topology domain found for pod {name}")
            found = _SEPARATOR.join(labels.get(key, "") for key in keys)
            if domain and domain != found:
                raise CacheError(f"more than 1 domain found for pod group: {domain}, {found}")
            domain = found
        return domain
