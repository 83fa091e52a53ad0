"""PodFitsHostPorts: two pods cannot have the same port of a node (spec 05 §17.2, §2.7)."""

from typing import ClassVar, Final

import numpy as np

from kubestow.api.ports import HostPort
from kubestow.arrays import BoolArray
from kubestow.cache.change_log import Depends
from kubestow.editions.v1_9.plugins.contract import ALL_FIT, Attempt, NamedRule, Reads, Verdicts
from kubestow.editions.v1_9.plugins.reasons import code_of, failing_where
from kubestow.index.nodes import Nodes

_TAKEN: Final = code_of("PodFitsHostPorts")


class PodFitsHostPorts(NamedRule):
    reads: ClassVar[Reads] = Reads.PODS

    def check(self, attempt: Attempt, nodes: Nodes) -> Verdicts:
        ports = frozenset(attempt.pod.host_ports)
        if not ports:
            return ALL_FIT
        taken = np.zeros(len(nodes), np.bool_)
        for port in ports:
            taken |= _conflicts(nodes, port)
        return Verdicts(failing_where(taken, _TAKEN))


def _conflicts(nodes: Nodes, port: HostPort) -> BoolArray:
    def compute(nodes: Nodes) -> BoolArray:
        return np.array([info.used_ports.conflicts(port) for info in nodes.infos()], np.bool_)

    return nodes.tracked(("v1.9 host port", port), Depends.PODS, compute)
