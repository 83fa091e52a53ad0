"""What can be seen of a scheduler at work, from the beginning of an attempt to its end.

    began ──► searched ──► decided ──► submitted ──► bound
                              │            └── (binding_failed) ──┐
                              └──────────────► failed ◄───────────┘

A scheduler has a list of observers. What none of them defines costs nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from kubestow.api.group import GroupKey, TreeNode
from kubestow.engine.decision import Decision, Nomination
from kubestow.engine.groups.outcome import GroupOutcome
from kubestow.framework.group_cycle import Assignments, GroupPlacement
from kubestow.framework.placements import PlacementTotals
from kubestow.framework.status import Status
from kubestow.queue import QueuedPod

P = ParamSpec("P")
R = TypeVar("R")


class Observer(Protocol):
    """Derive from it, and define what is to be seen; the other methods are never called.

    Calls come from within cycles and bindings. A decision is valid during the call only;
    `Decision.freeze` gives a copy to keep. Its timings are kept for listeners alone. What is tried
    in order to evict pods for a group is not shown.
    """

    # --- one pod ---

    def began(self, queued_pod: QueuedPod, *, waits: bool) -> None:
        """An attempt begins, of the pod or of its group; also again, after it was set aside.

        `waits`: other events are served while its cycle waits for extenders, or rests.
        """

    def searched(self, decision: Decision) -> None:
        """The nodes that fit were found; next are scores or, if none fits, PostFilter."""

    def decided(self, decision: Decision, queued_pod: QueuedPod) -> None:
        """The cycle has ended. The next is that the pod is placed, or goes back to the queue.

        Members of a group are decided on one after the other before any of them is placed, once for
        each placement that is tried. For an equal member, `decision.pod` is the one before.
        """

    def submitted(self, queued_pod: QueuedPod, node_name: str) -> None:
        """The binding begins, of a pod that is assumed and reserved. Called in its own task."""

    async def binding_failed(self, queued_pod: QueuedPod, status: Status) -> None:
        """Awaited before what the pod has reserved is given back."""

    def bound(self, queued_pod: QueuedPod, node_name: str) -> None:
        """The binding was written."""

    def failed(self, queued_pod: QueuedPod, status: Status, nomination: Nomination | None) -> None:
        """The attempt has failed in its cycle or its binding; next the pod goes back."""

    # --- a group ---

    def collected(self, key: GroupKey, queued_pods: Sequence[QueuedPod]) -> None:
        """The members of a group that wait were taken out of the queue."""

    def placements_generated(
        self,
        placements: Sequence[GroupPlacement] | Status,
        node_names: Sequence[str],
        part: TreeNode | None = None,
    ) -> None:
        """The placements that are tried, or why there is none; rows are those of `node_names`.

        `part` is the part of a tree of groups that they are for.
        """

    def group_tried(self, outcome: GroupOutcome, placement: GroupPlacement | None) -> None:
        """All members were tried, on the placement if there is one."""

    def placement_asked(
        self, node: TreeNode, scheduled_count: int, remaining_count: int, answer: Status | None
    ) -> None:
        """Whether a group can be placed, before its first member is tried and after each."""

    def group_post_filtered(self, status: Status, nominations: Mapping[str, str]) -> None:
        """PodGroupPostFilter was asked for a group that cannot be placed; nodes are by UID."""

    def placements_scored(
        self,
        candidates: Sequence[Assignments],
        totals: PlacementTotals,
        part: TreeNode | None = None,
    ) -> None:
        """Several placements are possible; the best is chosen."""


def callers(
    observers: Iterable[Observer], event: Callable[Concatenate[Observer, P], R]
) -> tuple[Callable[P, R], ...]:
    """The methods to call at an event, of the observers that define one."""
    name = event.__name__
    return tuple(
        getattr(observer, name)
        for observer in observers
        if getattr(type(observer), name) is not event
    )


class DecisionListener(Protocol):
    """Called with every decision, as `Observer.decided`; with a listener, timings are kept as well.

    For an equal member of a group, `decision.pod` is that member.
    """

    def __call__(self, decision: Decision, queued_pod: QueuedPod, /) -> None: ...
