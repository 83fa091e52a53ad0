"""Plugins that answer for one node at a time; the loop over the nodes is here.

Such a plugin is asked only about nodes that no earlier filter rejected. It is asked in every cycle,
unless it allows its answers to be reused for pods of the same shape:

    reuse = Reuse(filter=Reads.NODE, per_node=True)

`docs/guides/write-a-plugin.md` begins with one.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Final

import numpy as np

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.config.plugin_args import PluginArgs
from kubestow.errors import WrongAnswerError
from kubestow.framework.answers import is_int64, shown
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.metrics import FILTER, SCORE
from kubestow.framework.plugin import StatusCodes
from kubestow.framework.reuse import Reuse
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes

_KEY: Final = "framework/NodePlugin/"


class NodePlugin:
    """Base of `NodeFilter` and `NodeScore`. A plugin may have both as its bases."""

    name: ClassVar[str] = ""
    args_type: ClassVar[type[PluginArgs] | None] = None
    reuse: ClassVar[Reuse] = Reuse(per_node=True)

    def __init__(self, args: object = None, handle: object = None) -> None:
        """Plugins that use their arguments or the handle override the constructor."""


class NodeFilter(NodePlugin, ABC):
    """A filter for one node at a time.

    class OnlyBlue(NodeFilter):
        name = "OnlyBlue"

        def filter_node(self, pod, node):
            return node.metadata.labels.get("color") == "blue" or "node(s) were not blue"
    """

    @abstractmethod
    def filter_node(self, pod: Pod, node: Node) -> bool | str | Status | None:
        """True or None passes; False, a reason or a Status rejects."""

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        codes = self._codes(state)
        found: list[int] = []
        for node in nodes.node_objects():
            state.timer.check(self.name, FILTER)
            found.append(codes.code_of(self._status(self.filter_node(pod.pod, node), node)))
        return np.array(found, np.int64)

    def filter_status(self, state: CycleState, code: int) -> Status:
        return self._codes(state).status_of(code)

    def _codes(self, state: CycleState) -> StatusCodes:
        codes = state.get(_KEY + self.name)
        if codes is None:
            codes = StatusCodes()
            state.write(_KEY + self.name, codes)
        return codes

    def _status(self, answer: object, node: Node) -> Status | None:
        """The declared type is not trusted: a plugin of a user may not have been type-checked."""
        if answer is None or answer is True or isinstance(answer, Status):
            return answer if isinstance(answer, Status) else None
        if isinstance(answer, str) and answer:
            return Status.unschedulable(answer)
        # A comparison of NumPy values does not return a bool.
        if not isinstance(answer, bool | np.bool_ | str):
            raise WrongAnswerError(
                f'filter_node returned {shown(answer)} for node "{node.metadata.name}", '
                "expected True or None for a node that will do; else False, a reason or a Status"
            )
        if answer:
            return None
        return Status.unschedulable(f"node(s) didn't satisfy plugin {self.name}")


class NodeScore(NodePlugin, ABC):
    """A score for one node at a time."""

    @abstractmethod
    def score_node(self, pod: Pod, node: Node) -> int:
        """The node's score, 0 to 100 unless the plugin also has `normalize`."""

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        # The declared type is not trusted, as above.
        scores: list[object] = []
        for node in nodes.node_objects():
            state.timer.check(self.name, SCORE)
            scores.append(self.score_node(pod.pod, node))
        for position, score in enumerate(scores):
            # NumPy would cut 0.7 to 0 without an error.
            if not is_int64(score):
                raise WrongAnswerError(
                    f"score_node returned {shown(score)} for node "
                    f'"{nodes.names[position]}", expected a whole number of at most 64 bits'
                )
        return np.array(scores, np.int64)
