"""HostName: a pod that names its node fits on no other (spec 05 §17.2)."""

from typing import ClassVar, Final

from kubestow.editions.v1_9.plugins.contract import ALL_FIT, Attempt, NamedRule, Reads, Verdicts
from kubestow.editions.v1_9.plugins.reasons import code_of, failing_where
from kubestow.index.node_match import name_matches
from kubestow.index.nodes import Nodes

_OTHER_HOST: Final = code_of("HostName")


class HostName(NamedRule):
    reads: ClassVar[Reads] = Reads.NOTHING_ELSE

    def check(self, attempt: Attempt, nodes: Nodes) -> Verdicts:
        wanted = attempt.pod.pod.spec.node_name
        if not wanted:
            return ALL_FIT
        return Verdicts(failing_where(~name_matches(nodes, wanted), _OTHER_HOST))
