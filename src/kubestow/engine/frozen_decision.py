"""A copy of a decision that outlives its cycle: the source of explanations and recordings.

A `Decision` refers to arrays that the next cycle overwrites and to plugins that answer from the
current snapshot. `Decision.freeze` copies all of it within the cycle.

It is compact: nodes are row numbers, verdicts are kept once for all nodes that share them, and the
names of the nodes are the snapshot's own list, which is replaced, never changed, when rows move.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from kubestow.api.meta import JsonObject
from kubestow.api.pod_info import PodInfo
from kubestow.api.quantity import wrap_int64
from kubestow.arrays import IdArray, IntArray
from kubestow.framework.metrics import Timing
from kubestow.framework.runner import PluginScores
from kubestow.framework.status import Status


class FrozenStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A status as text, without its exception, which would keep the whole cycle in memory.

    code   the name upstream prints, such as "Unschedulable"
    """

    code: str
    plugin: str = ""
    reasons: tuple[str, ...] = ()

    @classmethod
    def of(cls, status: Status) -> "FrozenStatus":
        return cls(status.code.label, status.plugin, status.all_reasons)

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)


class PodRef(msgspec.Struct, frozen=True, rename="camel"):
    """`key` is namespace and name."""

    key: str
    uid: str

    @classmethod
    def of(cls, pod: PodInfo) -> "PodRef":
        return cls(pod.key, pod.uid)


class NodeNames:
    """Names of some nodes, kept as row numbers.

    rows   int32[k], read-only
    """

    __slots__ = ("_names", "rows")

    def __init__(self, names: Sequence[str], rows: npt.NDArray[np.integer[Any]]) -> None:
        self._names = names
        self.rows: IdArray = read_only(rows.astype(np.int32))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[str]:
        rows: list[int] = self.rows.tolist()
        return (self._names[row] for row in rows)


class NodesWithStatus(msgspec.Struct, frozen=True, rename="camel", eq=False):
    """The nodes that have the same verdict."""

    status: FrozenStatus
    nodes: NodeNames


class FrozenScores(msgspec.Struct, frozen=True, rename="camel", eq=False):
    """One plugin's part in the totals, all int64[k] in the order of the feasible nodes."""

    plugin: str
    weight: int
    raw: IntArray
    normalized: IntArray
    weighted: IntArray

    @classmethod
    def of(cls, part: PluginScores) -> "FrozenScores":
        return cls(
            part.plugin,
            part.weight,
            read_only(part.raw.astype(np.int64)),
            read_only(part.normalized.astype(np.int64)),
            read_only(part.normalized * np.int64(wrap_int64(part.weight))),
        )


class FrozenDecision(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", eq=False
):
    """One attempt to place one pod, as it was found in its cycle.

    Every node is in exactly one of `feasible`, `rejected` and `absent`.

    node                 the chosen node, or ""
    status               why no node was chosen; None when one was
    nominated_node       the pod's new nominated node, "" to clear it, None to leave it as it is
    via_nominated_node   the pod fits on its nominated node, so no other was filtered
    via_hint             the same of the node that an equal pod before it left as the next best
    start_index          the row at which the search began
    nodes_to_find        how many feasible nodes were enough
    evaluated_count      how many nodes were filtered
    restricted_to        the only nodes PreFilter left, None for all; `restricted_by` are the
                         plugins that did so
    feasible             the nodes that fit, in the order they were found
    rejected             those that do not, by verdict, in the order of their first row
    absent               nodes that were not filtered, and the status they count with: PreFilter
                         left them out, or the search ended before them
    total                int64[k]: scores of the feasible nodes; None if nodes were not scored
    scores               what each plugin and extender added to the totals
    failed_node          the node, one of the absent, at which a filter failed and ended the attempt
    victims              the pods that are evicted from the nominated node
    timings              how long each extension point took and, in sampled attempts, each plugin;
                         empty where nothing is measured
    """

    pod: PodRef
    profile: str
    node: str = ""
    status: FrozenStatus | None = None
    nominated_node: str | None = None
    via_nominated_node: bool = False
    via_hint: bool = False
    start_index: int
    nodes_to_find: int
    evaluated_count: int
    pre_filter: FrozenStatus | None = None
    restricted_to: tuple[str, ...] | None = None
    restricted_by: tuple[str, ...] = ()
    feasible: NodeNames
    rejected: tuple[NodesWithStatus, ...]
    absent: NodesWithStatus
    total: IntArray | None = None
    scores: tuple[FrozenScores, ...] = ()
    post_filter: FrozenStatus | None = None
    victims: tuple[PodRef, ...] = ()
    unschedulable_plugins: tuple[str, ...] = ()
    pending_plugins: tuple[str, ...] = ()
    failed_node: str = ""
    timings: tuple[Timing, ...] = ()

    def __repr__(self) -> str:
        where = f"{self.node or 'no node'}, {len(self.feasible)} of {self.evaluated_count} fit"
        return f"<FrozenDecision on {self.pod.key}: {where}>"

    def to_document(self) -> JsonObject:
        """The decision as JSON values, nodes by name; empty fields are left out."""
        return msgspec.to_builtins(self, enc_hook=_plain)


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array itself, made read-only."""
    array.flags.writeable = False
    return array


def _plain(value: NodeNames | npt.NDArray[Any]) -> list[Any]:
    return list(value) if isinstance(value, NodeNames) else value.tolist()
