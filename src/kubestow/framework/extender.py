"""How preemption calls an extender, an HTTP service that takes part in decisions (spec 04 §13).

Not here: configuration and HTTP (`engine`).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from kubestow.api.pod import Pod


class Victims(NamedTuple):
    """Pods to evict from one node, and how many of them violate a disruption budget."""

    pods: Sequence[Pod]
    violation_count: int


class MetaVictims(NamedTuple):
    """Pods to evict from one node, by UID, and how many of them violate a disruption budget."""

    uids: Sequence[str]
    violation_count: int


class PreemptExtender(Protocol):
    """An extender as preemption uses it."""

    @property
    def name(self) -> str:
        """Its address, as messages name it."""
        ...

    @property
    def is_ignorable(self) -> bool:
        """Whether its failures are ignored."""
        ...

    @property
    def has_preempt_verb(self) -> bool: ...

    def is_interested(self, pod: Pod) -> bool: ...

    def preempt(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, MetaVictims]:
        """The remaining candidates, by node name. May raise anything."""
        ...
