"""CheckVolumeBinding: passes every node, as its feature gate is off in v1.9 (spec 07 §7.1)."""

from typing import ClassVar

from kubestow.editions.v1_9.plugins.contract import ALL_FIT, Attempt, NamedRule, Reads, Verdicts
from kubestow.index.nodes import Nodes


class CheckVolumeBinding(NamedRule):
    """Exists because policies name it; VolumeScheduling was alpha."""

    reads: ClassVar[Reads] = Reads.NOTHING_ELSE

    def check(self, attempt: Attempt, nodes: Nodes) -> Verdicts:
        return ALL_FIT
