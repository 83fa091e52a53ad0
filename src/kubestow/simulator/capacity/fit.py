"""How many more copies of a pod, or of a group of pods, a cluster has room for.

Copies are placed one after the other until one cannot be. What then keeps nodes from taking
another is read from the attempt that failed, by reason.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kubestow.api.files import Document
from kubestow.api.pod import Pod
from kubestow.engine.frozen_decision import FrozenDecision, FrozenStatus, NodeNames
from kubestow.simulator.capacity.copies import CopyTemplate
from kubestow.simulator.capacity.placing import PlacingCluster, PlacingSetup, PodName, numbered
from kubestow.simulator.virtual_time import run_in_virtual_time

COPIES_MAX: Final = 100_000  # by default; more are not tried


class NodeShare(msgspec.Struct, frozen=True, rename="camel"):
    """How many pods of copies a node took."""

    name: str
    pods: int


class Limit(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Why nodes take no more; of several reasons of a node each counts."""

    reason: str
    plugin: str = ""
    nodes: int
    # How many of these nodes took copies: there, it is what ran out.
    nodes_with_copies: int


class Fit(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result.

    copies        how many fit
    pods_per_copy 1, or the number of pods of a group
    nodes         where they went, most first
    limited_by    why no more fit, what ran out on most nodes with copies first
    message       the condition of the pod that did not fit
    is_cut        whether the number asked for was reached, so that more may fit
    waiting       pods of the cluster itself that wait for a node
    """

    copies: int
    pods_per_copy: int
    node_count: int
    nodes: list[NodeShare]
    limited_by: list[Limit]
    message: str = ""
    is_cut: bool = False
    waiting: int = 0


def fit(
    cluster: Sequence[Document],
    copies: Sequence[Document],
    setup: PlacingSetup | None = None,
    *,
    copies_max: int = COPIES_MAX,
) -> Fit:
    """Place copies of the second input in the first until one does not fit.

    Raises InputError for input that cannot be used, and PluginError if an attempt fails.
    """
    template = CopyTemplate(copies)

    async def run() -> Fit:
        async with PlacingCluster(cluster, setup or PlacingSetup()).running() as placing:
            placing.create_missing(template.shared)
            waiting_count = len(placing.waiting())
            found = await fit_in(placing, template, copies_max=copies_max)
            return msgspec.structs.replace(found, waiting=waiting_count)

    return run_in_virtual_time(run())


async def fit_in(placing: PlacingCluster, template: CopyTemplate, *, copies_max: int) -> Fit:
    """The same in a cluster that runs; the copies are taken off again."""
    # Also if they are placed otherwise: what is wrong with a pod is found before any is placed.
    copy = [one for one in template.copy(1) if one.raw["kind"] == "Pod"]
    pods = [placing.admitted(document) for document in copy]
    if template.is_one_pod and placing.can_place(pods[0]):
        return _place_equal(placing, pods[0], copies_max)
    return await _add_copies(placing, template, copies_max)


def _place_equal(placing: PlacingCluster, pod: Pod, copies_max: int) -> Fit:
    placed: list[Pod] = []
    placing.failure = None
    while len(placed) < copies_max:
        copy = placing.place(numbered(pod, len(placed) + 1))
        if copy is None:
            break
        placed.append(copy)
    nodes = Counter(copy.spec.node_name for copy in placed)
    failure = placing.failure
    placing.take_off(placed)
    message = "" if failure is None else placing.failure_text
    return _fit(placing, len(placed), 1, nodes, failure, message)


async def _add_copies(placing: PlacingCluster, template: CopyTemplate, copies_max: int) -> Fit:
    added: list[PodName] = []
    nodes: Counter[str] = Counter()
    copy_count, failure, message = 0, None, ""
    while copy_count < copies_max:
        pods = await placing.add(template.copy(copy_count + 1))
        added += pods
        waiting = [pod for pod in pods if not placing.node_of(pod)]
        if waiting:
            failure, message = placing.failure, placing.message_of(waiting[0])
            break
        nodes.update(map(placing.node_of, pods))
        copy_count += 1
    await placing.remove(added)
    return _fit(placing, copy_count, template.pod_count, nodes, failure, message)


def _fit(
    placing: PlacingCluster,
    copy_count: int,
    pods_per_copy: int,
    nodes: Counter[str],
    failure: FrozenDecision | None,
    message: str,
) -> Fit:
    shares = sorted(nodes.items(), key=lambda entry: (-entry[1], entry[0]))
    return Fit(
        copies=copy_count,
        pods_per_copy=pods_per_copy,
        node_count=len(placing.snapshot().nodes),
        nodes=[NodeShare(*share) for share in shares],
        limited_by=[] if failure is None else _limits(failure, nodes),
        message=message,
        is_cut=not message,
    )


def _limits(failure: FrozenDecision, nodes: Counter[str]) -> list[Limit]:
    """By reason, how many nodes it keeps from taking another copy."""
    counts: dict[tuple[str, str], list[int]] = {}
    for status, names in _rejections(failure):
        rejected = list(names)
        used = sum(name in nodes for name in rejected)
        for reason in status.reasons:
            entry = counts.setdefault((reason, status.plugin), [0, 0])
            entry[0] += len(rejected)
            entry[1] += used
    limits = [
        Limit(reason=reason, plugin=plugin, nodes=total, nodes_with_copies=used)
        for (reason, plugin), (total, used) in counts.items()
    ]
    return sorted(limits, key=lambda limit: (-limit.nodes_with_copies, -limit.nodes, limit.reason))


def _rejections(failure: FrozenDecision) -> Iterator[tuple[FrozenStatus, NodeNames]]:
    for rejected in (*failure.rejected, failure.absent):
        if len(rejected.nodes):
            yield rejected.status, rejected.nodes
