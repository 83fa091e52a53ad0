"""CheckVolumeBinding: passes every node, as its feature gate is off in v1.9 (spec 07 §7.1)."""

from typing import ClassVar

from kubestow.index.nodes import Nodes
from kubestow.plugins.legacy.contract import ALL_FIT, Attempt, NamedRule, Reads, Verdicts


class CheckVolumeBinding(NamedRule):
    """Exists because policies name it; VolumeScheduling was alpha."""

    reads: ClassVar[Reads] = Reads.NOTHING_ELSE

    def check(self, attempt: Attempt, nodes: Nodes) -> Verdicts:
        return ALL_FIT
