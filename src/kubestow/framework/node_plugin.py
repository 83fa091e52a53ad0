"""Plugins that answer for one node at a time; the loop over the nodes is here.

Such a plugin is asked only about nodes that no earlier filter rejected. A rule about the pods on a
node takes them as a third argument: `filter_node(self, pod, node, pods)`. A plugin is asked in
every cycle, unless it allows its answers to be reused for pods of the same shape:

    reuse = Reuse(filter=Reads.NODE)

`docs/guides/write-a-plugin.md` begins with one.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

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
from kubestow.framework.reuse import NO_REUSE, Reuse
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes

_KEY: Final = "framework/NodePlugin/"
# The third argument of `filter_node` and `score_node`, which a plugin may leave out.
_PODS: Final = "pods"


# What `filter_node` may return.
FilterAnswer = bool | str | Status | None


class NodePlugin:
    """Base of `NodeFilter` and `NodeScore`. A plugin may have both as its bases."""

    name: ClassVar[str] = ""
    args_type: ClassVar[type[PluginArgs] | None] = None
    reuse: ClassVar[Reuse] = NO_REUSE
    per_node: ClassVar[bool] = True
    _filter_takes_pods: ClassVar[bool] = False
    _score_takes_pods: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # Once: preemption asks node by node.
        cls._filter_takes_pods = cls._takes_pods("filter_node")
        cls._score_takes_pods = cls._takes_pods("score_node")

    def __init__(self, args: object = None, handle: object = None) -> None:
        """Plugins that use their arguments or the handle override the constructor."""

    @classmethod
    def _takes_pods(cls, method: str) -> bool:
        """Whether the method has a third parameter for the pods of the node.

        A parameter of another name that has a default is the plugin's own.
        """
        found = inspect.getattr_static(cls, method, None)
        if not inspect.isfunction(found):
            return False
        parameters = [*inspect.signature(found).parameters.values()][3:4]  # The first is `self`.
        return any(
            one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
            and (one.name == _PODS or one.default is one.empty)
            for one in parameters
        )


class NodeFilter(NodePlugin, ABC):
    """A filter for one node at a time.

    class OnlyBlue(NodeFilter):
        name = "OnlyBlue"

        def filter_node(self, pod, node):
            return node.metadata.labels.get("color") == "blue" or "node(s) were not blue"
    """

    @abstractmethod
    def filter_node(self, pod: Pod, node: Node, *args: Any, **kwargs: Any) -> FilterAnswer:
        """True or None passes; False, a reason or a Status rejects.

        Declared as `filter_node(self, pod, node)`, or as `filter_node(self, pod, node, pods)` to be
        given the pods on the node: those that are bound, those that are about to be, and in a
        trial of preemption without the victims.
        """

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        codes = self._codes(state)
        found: list[int] = []
        for node, *pods in _asked_about(nodes, with_pods=self._filter_takes_pods):
            state.timer.check(self.name, FILTER)
            answer = self.filter_node(pod.pod, node, *pods)
            found.append(codes.code_of(self._status(answer, node)))
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
    def score_node(self, pod: Pod, node: Node, *args: Any, **kwargs: Any) -> int:
        """The node's score, 0 to 100 unless the plugin also has `normalize`.

        As with `filter_node`, a third parameter gets the pods on the node.
        """

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        # The declared type is not trusted, as above.
        scores: list[object] = []
        for node, *pods in _asked_about(nodes, with_pods=self._score_takes_pods):
            state.timer.check(self.name, SCORE)
            scores.append(self.score_node(pod.pod, node, *pods))
        for position, score in enumerate(scores):
            # NumPy would cut 0.7 to 0 without an error.
            if not is_int64(score):
                raise WrongAnswerError(
                    f"score_node returned {shown(score)} for node "
                    f'"{nodes.names[position]}", expected a whole number of at most 64 bits'
                )
        return np.array(scores, np.int64)


def _asked_about(nodes: Nodes, *, with_pods: bool) -> Iterator[tuple[Any, ...]]:
    """Per node what a method is given besides the pod: the node and, if it takes them, its pods."""
    if not with_pods:
        yield from ((node,) for node in nodes.node_objects())
        return
    for node, info in zip(nodes.node_objects(), nodes.infos(), strict=True):
        pods: Sequence[Pod] = [one.pod for one in info.pods]
        yield node, pods
