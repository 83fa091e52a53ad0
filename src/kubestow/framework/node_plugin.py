"""Plugins that answer for one node at a time; the loop over the nodes is here.

Such a plugin is asked only about nodes that no earlier filter rejected. It is asked in every cycle,
unless it allows its answers to be reused for pods of the same shape:

    reuse = Reuse(filter=Reads.NODE, per_node=True)

`docs/guides/write-a-plugin.md` begins with one.
"""

from typing import ClassVar, Final

import numpy as np

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.config.plugin_args import PluginArgs
from kubestow.framework.cycle_state import CycleState
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


class NodeFilter(NodePlugin):
    """A filter for one node at a time.

    class OnlyBlue(NodeFilter):
        name = "OnlyBlue"

        def filter_node(self, pod, node):
            return node.metadata.labels.get("color") == "blue" or "node(s) were not blue"
    """

    def filter_node(self, pod: Pod, node: Node) -> bool | str | Status | None:
        """True or None passes; False, a reason or a Status rejects."""
        raise NotImplementedError

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        codes = self._codes(state)
        return np.array(
            [
                codes.code_of(self._status(self.filter_node(pod.pod, node)))
                for node in nodes.node_objects()
            ],
            np.int64,
        )

    def filter_status(self, state: CycleState, code: int) -> Status:
        return self._codes(state).status_of(code)

    def _codes(self, state: CycleState) -> StatusCodes:
        codes = state.get(_KEY + self.name)
        if codes is None:
            codes = StatusCodes()
            state.write(_KEY + self.name, codes)
        return codes

    def _status(self, answer: bool | str | Status | None) -> Status | None:
        if isinstance(answer, Status):
            return answer
        if isinstance(answer, str) and answer:
            return Status.unschedulable(answer)
        # Any truth value counts: a comparison of NumPy values does not return a bool.
        if answer is None or answer:
            return None
        return Status.unschedulable(f"node(s) didn't satisfy plugin {self.name}")


class NodeScore(NodePlugin):
    """A score for one node at a time."""

    def score_node(self, pod: Pod, node: Node) -> int:
        """The node's score, 0 to 100 unless the plugin also has `normalize`."""
        raise NotImplementedError

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        return np.array([self.score_node(pod.pod, node) for node in nodes.node_objects()], np.int64)
