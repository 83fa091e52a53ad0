"""Which events may help a pod that hard spread constraints rejected (spec 06 §6.3.9)."""

from collections.abc import Sequence

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.framework.events import Hint
from kubestow.plugins._shared.per_pod import PerPod
from kubestow.plugins.pod_topology_spread.constraints import HARD, Constraint, Constraints


class Hints:
    """The hint functions, for the constraints of one profile."""

    def __init__(self, constraints: Constraints) -> None:
        self._constraints = constraints
        self._own = PerPod(self._hard, _constraint_count)

    def for_pod(self, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        """Whether an added, deleted or changed pod changes the counts."""
        if not _is_involved(old, pod) or not _is_involved(new, pod):
            return Hint.SKIP
        constraints = self._hard_constraints(pod)
        if old is not None and new is not None:
            return _hint_for_update(pod, old, new, constraints)
        changed = new if new is not None else old
        if changed is None:
            return Hint.SKIP
        labels = changed.metadata.labels
        is_counted = any(constraint.selector.matches(labels) for constraint in constraints)
        return Hint.QUEUE if is_counted else Hint.SKIP

    def for_node(self, pod: Pod, old: Node | None, new: Node | None) -> Hint:
        """Whether an added, deleted or changed node changes the domains."""
        constraints = self._hard_constraints(pod)
        counted_before = old is not None and _has_all_keys(old, constraints)
        counts_now = new is not None and _has_all_keys(new, constraints)
        if old is None or new is None:
            return Hint.QUEUE if counted_before or counts_now else Hint.SKIP
        if counted_before != counts_now:
            return Hint.QUEUE
        is_changed = counts_now and (
            old.spec.taints != new.spec.taints or _has_moved(old, new, constraints)
        )
        return Hint.QUEUE if is_changed else Hint.SKIP

    def _hard_constraints(self, pod: Pod) -> Sequence[Constraint]:
        # Default constraints depend on services and owners, so they are looked up every time.
        return self._own(pod) if pod.spec.topology_spread_constraints else self._hard(pod)

    def _hard(self, pod: Pod) -> Sequence[Constraint]:
        return self._constraints.of(pod, HARD)


def _constraint_count(pod: Pod) -> int:
    return len(pod.spec.topology_spread_constraints)


def _is_involved(other: Pod | None, pod: Pod) -> bool:
    """Whether the pod, if any, can matter: the waiting pod itself, or one that is counted."""
    if other is None or other.metadata.uid == pod.metadata.uid:
        return True
    is_placed = bool(other.spec.node_name or other.status.nominated_node_name)
    return is_placed and other.metadata.namespace == pod.metadata.namespace


def _hint_for_update(pod: Pod, old: Pod, new: Pod, constraints: Sequence[Constraint]) -> Hint:
    is_itself = new.metadata.uid == pod.metadata.uid
    tolerates_others = is_itself and old.spec.tolerations != new.spec.tolerations
    # Other nodes may count now, and with them other domains.
    if tolerates_others and any(constraint.honors_taints for constraint in constraints):
        return Hint.QUEUE
    return Hint.QUEUE if is_recounted(old, new, constraints) else Hint.SKIP


def is_recounted(old: Pod, new: Pod, constraints: Sequence[Constraint]) -> bool:
    """Whether a constraint counts the pod with one of the two sets of labels only."""
    before, after = old.metadata.labels, new.metadata.labels
    return before != after and any(
        constraint.selector.matches(before) != constraint.selector.matches(after)
        for constraint in constraints
    )


def _has_all_keys(node: Node, constraints: Sequence[Constraint]) -> bool:
    return all(constraint.topology_key in node.metadata.labels for constraint in constraints)


def _has_moved(old: Node, new: Node, constraints: Sequence[Constraint]) -> bool:
    before, after = old.metadata.labels, new.metadata.labels
    return any(
        before.get(constraint.topology_key) != after.get(constraint.topology_key)
        for constraint in constraints
    )
