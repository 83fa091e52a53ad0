"""PodToleratesNodeTaints: NoSchedule and NoExecute taints must be tolerated (spec 05 §17.2)."""

from typing import ClassVar, Final

from kubestow.editions.v1_9.plugins.contract import ALL_FIT, Attempt, NamedRule, Reads, Verdicts
from kubestow.editions.v1_9.plugins.reasons import code_of, failing_where
from kubestow.index.nodes import Nodes
from kubestow.index.taint_match import untolerated

_TAINTED: Final = code_of("PodToleratesNodeTaints")


class PodToleratesNodeTaints(NamedRule):
    reads: ClassVar[Reads] = Reads.NOTHING_ELSE

    def check(self, attempt: Attempt, nodes: Nodes) -> Verdicts:
        kept_out = untolerated(nodes, attempt.pod.tolerations, comparison_operators=False)
        if kept_out is None:
            return ALL_FIT
        return Verdicts(failing_where(kept_out > 0, _TAINTED))
