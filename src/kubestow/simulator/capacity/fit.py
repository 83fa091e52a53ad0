"""How many more copies of a pod, or of a group of pods, a cluster has room for.

Copies are placed one after the other until one cannot be. What then keeps nodes from taking
another is read from the attempt that failed, by reason.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from kubestow.api.files import Document
from kubestow.api.pod import Pod
from kubestow.engine.frozen_decision import FrozenDecision, FrozenStatus, NodeNames
from kubestow.simulator.capacity.copies import CopyTemplate, copy_name
from kubestow.simulator.capacity.placing import PlacingCluster, PlacingSetup, renamed
from kubestow.simulator.input.pods import PodKey
from kubestow.simulator.virtual_time import run_in_virtual_time

NOT_TRIED: Final = "it was not tried: its group lacks members, or a plugin holds it back"
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
    pod           the pod of the next copy that did not fit: namespace and name
    message       its condition
    is_cut        whether the number asked for was reached, so that more may fit
    waiting       pods of the cluster itself that wait for a node
    """

    copies: int
    pods_per_copy: int
    node_count: int
    nodes: list[NodeShare]
    limited_by: list[Limit]
    pod: str = ""
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
    return fit_template(cluster, template, setup or PlacingSetup(), copies_max=copies_max)


def fit_template(
    cluster: Sequence[Document], template: CopyTemplate, setup: PlacingSetup, *, copies_max: int
) -> Fit:
    """Place copies that were read already, until one does not fit."""

    async def run() -> Fit:
        async with PlacingCluster(cluster, setup).running() as placing:
            placing.create_missing(template.shared)
            return await _fit_in(placing, template, copies_max)

    return run_in_virtual_time(run())


async def _fit_in(placing: PlacingCluster, template: CopyTemplate, copies_max: int) -> Fit:
    waiting_count = len(placing.waiting())
    # Also if they are placed otherwise: what is wrong with a pod is found before any is placed.
    copy = [one for one in template.copy(1) if one.raw["kind"] == "Pod"]
    pods = [placing.admitted(document) for document in copy]
    if template.only_pod and placing.can_place(pods[0]):
        placed, misfit = _place_equal(placing, pods[0], template.only_pod, copies_max)
    else:
        placed, misfit = await _add_copies(placing, template, copies_max)
    nodes = Counter(placed)
    shares = sorted(nodes.items(), key=lambda entry: (-entry[1], entry[0]))
    return Fit(
        copies=len(placed) // template.pod_count,
        pods_per_copy=template.pod_count,
        node_count=len(placing.snapshot().nodes),
        nodes=[NodeShare(*share) for share in shares],
        limited_by=[] if misfit is None else _limits(misfit.failure, nodes),
        pod="" if misfit is None else "/".join(misfit.pod),
        message="" if misfit is None else misfit.message,
        is_cut=misfit is None,
        waiting=waiting_count,
    )


class _Misfit(NamedTuple):
    """A pod of the first copy that does not fit."""

    pod: PodKey
    message: str
    failure: FrozenDecision | None  # None if it was never tried


def _place_equal(
    placing: PlacingCluster, pod: Pod, name: str, copies_max: int
) -> tuple[list[str], _Misfit | None]:
    """The nodes of the copies, and what ended it."""
    nodes: list[str] = []
    while len(nodes) < copies_max:
        copy = renamed(pod, copy_name(name, len(nodes) + 1))
        placed = placing.place(copy)
        if placed is None:
            key = PodKey.of(copy)
            return nodes, _Misfit(key, placing.failure_text(key), placing.failure_of(key))
        nodes.append(placed.spec.node_name)
    return nodes, None


async def _add_copies(
    placing: PlacingCluster, template: CopyTemplate, copies_max: int
) -> tuple[list[str], _Misfit | None]:
    """The nodes of the pods of all whole copies, and what ended it."""
    nodes: list[str] = []
    for number in range(1, copies_max + 1):
        pods = await placing.add(template.copy(number))
        waiting = [pod for pod in pods if not placing.node_of(pod)]
        if waiting:
            # Members of a group also wait for those that find no node.
            misfit = next(filter(placing.failure_of, waiting), waiting[0])
            message = placing.message_of(misfit) or NOT_TRIED
            return nodes, _Misfit(misfit, message, placing.failure_of(misfit))
        nodes += map(placing.node_of, pods)
    return nodes, None


def _limits(failure: FrozenDecision | None, nodes: Counter[str]) -> list[Limit]:
    """The reasons, with how many nodes each keeps from taking another copy."""
    if failure is None:
        return []
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
