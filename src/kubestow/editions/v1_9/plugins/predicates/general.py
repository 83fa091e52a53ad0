"""GeneralPredicates: what a kubelet checks as well, as one predicate (spec 05 §17.2)."""

from typing import ClassVar

from kubestow.editions.v1_9.plugins.contract import Attempt, NamedRule, Predicate, Reads, Verdicts
from kubestow.editions.v1_9.plugins.predicates.fits_resources import PodFitsResources
from kubestow.editions.v1_9.plugins.predicates.host_name import HostName
from kubestow.editions.v1_9.plugins.predicates.host_ports import PodFitsHostPorts
from kubestow.editions.v1_9.plugins.predicates.node_selector import MatchNodeSelector
from kubestow.editions.v1_9.plugins.reasons import joined
from kubestow.index.nodes import Nodes


class GeneralPredicates(NamedRule):
    """All four parts run; the reasons of each that fails are joined, in this order."""

    reads: ClassVar[Reads] = Reads.PODS
    _PARTS: ClassVar[tuple[Predicate, ...]] = (
        PodFitsResources(),
        HostName(),
        PodFitsHostPorts(),
        MatchNodeSelector(),
    )

    def check(self, attempt: Attempt, nodes: Nodes) -> Verdicts:
        codes = None
        for part in self._PARTS:
            codes = joined(codes, part.check(attempt, nodes).codes)
        return Verdicts(codes)
