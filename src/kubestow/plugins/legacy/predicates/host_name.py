"""HostName: a pod that names its node fits on no other (spec 05 §17.2)."""

from typing import ClassVar, Final

from kubestow.index.node_match import name_matches
from kubestow.index.nodes import Nodes
from kubestow.plugins.legacy.contract import ALL_FIT, Attempt, NamedRule, Reads, Verdicts
from kubestow.plugins.legacy.reasons import code_of, failing_where

_OTHER_HOST: Final = code_of("HostName")


class HostName(NamedRule):
    reads: ClassVar[Reads] = Reads.NOTHING_ELSE

    def check(self, attempt: Attempt, nodes: Nodes) -> Verdicts:
        wanted = attempt.pod.pod.spec.node_name
        if not wanted:
            return ALL_FIT
        return Verdicts(failing_where(~name_matches(nodes, wanted), _OTHER_HOST))
