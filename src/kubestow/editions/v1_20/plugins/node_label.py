"""NodeLabel: nodes must or should have labels, or not; only a Policy enables it (spec 09 §13.4)."""

from typing import ClassVar, Final

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.config.plugin_args import PluginArgs
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.framework.reuse import PodReads, Reads, Reuse
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes

_WRONG_LABELS: Final = Status.unresolvable("node(s) didn't have the requested labels")


class NodeLabelArgs(PluginArgs, frozen=True, kw_only=True):
    present_labels: tuple[str, ...] = ()
    absent_labels: tuple[str, ...] = ()
    present_labels_preference: tuple[str, ...] = ()
    absent_labels_preference: tuple[str, ...] = ()


class NodeLabel:
    name: ClassVar[str] = "NodeLabel"
    args_type: ClassVar[type[NodeLabelArgs]] = NodeLabelArgs
    reuse: ClassVar[Reuse] = Reuse(filter=Reads.NODE, score=Reads.NODE, pod=PodReads.SPEC)

    def __init__(self, args: NodeLabelArgs, handle: Handle) -> None:
        # A label, and whether a node needs it.
        self._required = _wishes(args.present_labels, args.absent_labels)
        self._preferred = _wishes(args.present_labels_preference, args.absent_labels_preference)

    def events(self) -> Registrations:
        return [on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)]

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        is_wrong = np.zeros(len(nodes), np.bool_)
        for label, presence in self._required:
            is_wrong |= (nodes.label_ids(label) != 0) != presence
        return is_wrong.astype(np.int64) if is_wrong.any() else None

    def filter_status(self, state: CycleState, code: int) -> Status:
        return _WRONG_LABELS

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int:
        if not self._preferred:
            return 0
        met = np.zeros(len(nodes), np.int64)
        for label, presence in self._preferred:
            met += (nodes.label_ids(label) != 0) == presence
        return met * MAX_NODE_SCORE // len(self._preferred)


def _wishes(present: tuple[str, ...], absent: tuple[str, ...]) -> tuple[tuple[str, bool], ...]:
    return (*((label, True) for label in present), *((label, False) for label in absent))
