"""Places many pods one after the other on a cluster that is as before afterwards.

Equal pods share an answer: after one that fits nowhere, the others of its class are not tried until
another pod was placed. Reserve of the plugins runs, so that no volume or device is given twice.
"""

from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

from kubestow.api.pod import Pod, assign, priority_of
from kubestow.api.pod_info import PodInfo
from kubestow.explain.cluster import StillCluster
from kubestow.explain.waiting import may_try
from kubestow.framework.runner import run_reserve, run_unreserve

# How often pods that did not fit are tried again because others were placed.
PASSES_MAX: Final = 3


class Together(NamedTuple):
    """Where pods are, by namespace and name, and those that found no node."""

    nodes: Mapping[str, str]
    waiting: Sequence[Pod]


def class_of(pod: Pod) -> Hashable:
    """Equal for pods that differ in their names only."""
    info = PodInfo(pod)
    labels = frozenset(pod.metadata.labels.items())
    claims = tuple(pod.spec.resource_claims), tuple(info.pvc_keys)
    return info.namespace, labels, info.full_shape, info.priority, claims, pod.spec.scheduler_name


def in_queue_order(pods: Iterable[Pod]) -> list[Pod]:
    """The most important first; equal ones in the order given."""
    return sorted(pods, key=lambda pod: -priority_of(pod))


@contextmanager
def placed_together(cluster: StillCluster, pods: Sequence[Pod]) -> Generator[Together, None, None]:
    """Inside, the pods that fit are on their nodes. The pods are in the cluster, and wait."""
    nodes: dict[str, str] = {}
    left = in_queue_order(pods)
    with ExitStack() as stack:
        for _ in range(PASSES_MAX):
            tried = _one_pass(cluster, left, nodes, stack)
            if len(tried) == len(left) or not tried:
                left = tried
                break
            left = tried
        yield Together(nodes, left)


def _one_pass(
    cluster: StillCluster, pods: Sequence[Pod], nodes: dict[str, str], stack: ExitStack
) -> list[Pod]:
    """Place what fits; the pods that do not."""
    misfits: set[Hashable] = set()
    left: list[Pod] = []
    for pod in pods:
        kind = class_of(pod)
        if kind in misfits or not may_try(cluster, pod):
            left.append(pod)
        elif not _place(cluster, pod, nodes, stack):
            misfits.add(kind)
            left.append(pod)
    return left


def _place(cluster: StillCluster, pod: Pod, nodes: dict[str, str], stack: ExitStack) -> bool:
    decision = cluster.decide(pod)
    profile = cluster.profile_of(pod)
    if not decision.is_scheduled or profile is None:
        return False
    node, state = decision.node_name, decision.state
    placed = assign(pod, node)
    change = ExitStack()
    change.enter_context(cluster.changed(placed))
    info = PodInfo(placed)
    if run_reserve(profile, state, info, node) is not None:
        run_unreserve(profile, state, info, node)
        change.close()
        return False
    stack.enter_context(change)
    cluster.placed_for_now.add(pod.metadata.uid)
    stack.callback(cluster.placed_for_now.discard, pod.metadata.uid)
    stack.callback(run_unreserve, profile, state, info, node)
    nodes[info.key] = node
    return True
