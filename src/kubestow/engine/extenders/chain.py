"""How several extenders filter, score and bind one pod (spec 04 §13.3 to §13.5).

An extender is called only for pods it is interested in. The failure of an ignorable one is skipped;
that of another ends the attempt. When scoring, every failure is skipped.

Not here: how an extender is reached (`http_extender`), preemption (`plugins.default_preemption`,
which asks the same extenders).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.quantity import wrap_int64
from kubestow.arrays import IntArray, pick
from kubestow.cache.snapshot import Snapshot
from kubestow.errors import ExtenderError
from kubestow.framework.extender import PreemptExtender
from kubestow.framework.status import Status
from kubestow.logs import inform

log = logging.getLogger(__name__)

# Extenders score from 0 to 10, plugins from 0 to 100.
SCORE_FACTOR: Final = 10


class FilterAnswer(NamedTuple):
    """An extender's answer to a list of nodes.

    node_names     the nodes that are left, in the extender's order
    has_objects    it sent whole nodes: they are scored as if no pods were on them
    failed         why nodes were taken out, by name
    unresolvable   the same where evicting pods would not help; takes precedence over `failed`
    """

    node_names: Sequence[str]
    has_objects: bool = False
    failed: Mapping[str, str] = {}
    unresolvable: Mapping[str, str] = {}


class HostScore(NamedTuple):
    host: str
    score: int


class Extender(PreemptExtender, Protocol):
    """Every method may raise anything."""

    @property
    def weight(self) -> int: ...

    @property
    def has_filter_verb(self) -> bool: ...

    @property
    def has_prioritize_verb(self) -> bool: ...

    @property
    def has_bind_verb(self) -> bool: ...

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> FilterAnswer: ...

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Sequence[HostScore]: ...

    def bind(self, pod: Pod, node_name: str) -> None: ...


class FilterOutcome(NamedTuple):
    """The feasible nodes that all extenders left.

    rows          in the order the last extender gave
    statuses      row → why it was taken out
    has_objects   the nodes are to be scored as if no pods were on them
    error         of an extender that is not ignorable; the rest has no meaning then
    """

    rows: npt.NDArray[np.intp]
    statuses: Mapping[int, Status]
    has_objects: bool
    error: Exception | None = None


class ExtenderScore(NamedTuple):
    """One extender's part in the totals, int64[node] in the order of the feasible nodes."""

    name: str
    weight: int
    scores: IntArray


class Priorities(NamedTuple):
    """What extenders add to the totals.

    randomizers   int64[node]: decides between equal totals; 0 where no extender named the node
    """

    parts: Sequence[ExtenderScore]
    randomizers: IntArray


# Runs a function that blocks.
RunBlocking = Callable[[Callable[[], None]], Awaitable[None]]
# Returns the result of a future (`engine.waiting_cycle`).
Wait = Callable[["Future[Any]"], Any]


def wait_blocking(answer: "Future[Any]") -> Any:
    return answer.result()


class ExtenderChain:
    """All extenders of a scheduler, in the order they are called.

    rng            breaks ties between nodes that an extender scored (spec 04 §8.4)
    wait           returns the result of a future, in a cycle
    run_blocking   runs a binding, which may block; by default in a thread
    """

    def __init__(
        self,
        extenders: Sequence[Extender],
        *,
        rng: np.random.Generator,
        wait: Wait = wait_blocking,
        run_blocking: RunBlocking = asyncio.to_thread,
    ) -> None:
        self.extenders = tuple(extenders)
        self._rng = rng
        self._wait = wait
        self._run_blocking = run_blocking
        self.affects_choice = any(
            extender.has_filter_verb or extender.has_prioritize_verb for extender in extenders
        )

    def is_interested(self, pod: Pod) -> bool:
        """Whether an extender may be called for this pod."""
        return any(extender.is_interested(pod) for extender in self.extenders)

    # --- filter ---

    def filter(self, pod: Pod, rows: npt.NDArray[np.intp], snapshot: Snapshot) -> FilterOutcome:
        statuses: dict[int, Status] = {}
        has_objects = False
        for extender in self.extenders:
            if len(rows) == 0:
                break
            if not extender.has_filter_verb or not extender.is_interested(pod):
                continue
            try:
                answer = extender.filter(pod, pick(snapshot.nodes, rows))
                left = rows_left(extender.name, answer, rows, snapshot)
            except Exception as error:  # An extender may raise anything.
                if not extender.is_ignorable:
                    return FilterOutcome(rows, statuses, has_objects, error)
                _log_skipped(extender, error)
                continue
            rows, has_objects = left, has_objects or answer.has_objects
            _note_failed(statuses, answer, snapshot)
        return FilterOutcome(rows, statuses, has_objects)

    # --- prioritize ---

    def prioritize(
        self, pod: Pod, rows: npt.NDArray[np.intp], snapshot: Snapshot
    ) -> Priorities | None:
        """The extenders' scores of the feasible nodes; None if none is interested in the pod."""
        asked = [extender for extender in self.extenders if extender.is_interested(pod)]
        if not asked:
            return None
        nodes = pick(snapshot.nodes, rows)
        positions: dict[str, list[int]] = {}
        for position, node in enumerate(nodes):
            positions.setdefault(node.metadata.name, []).append(position)
        parts: list[ExtenderScore] = []
        is_named = np.zeros(len(nodes), np.bool_)
        for extender, answer in zip(asked, all_scores(asked, pod, nodes, self._wait), strict=True):
            if answer is None:
                # An extender without the verb names every node, with score 0.
                is_named |= not extender.has_prioritize_verb
                continue
            scores = np.zeros(len(nodes), np.int64)
            for host, score in answer:
                for position in positions.get(host, ()):
                    scores[position] = wrap_int64(int(scores[position]) + score)
                    is_named[position] = True
            parts.append(ExtenderScore(extender.name, extender.weight * SCORE_FACTOR, scores))
        randomizers = np.zeros(len(nodes), np.int64)
        if is_named.any():
            drawn = self._rng.integers(0, np.iinfo(np.int64).max, int(is_named.sum()))
            randomizers[is_named] = drawn
        return Priorities(parts, randomizers)

    # --- bind ---

    async def bind(self, pod: Pod, node_name: str) -> bool:
        """Bind by an extender; False if none does. Raises the error of one not ignorable."""
        for extender in self.extenders:
            if not extender.has_bind_verb or not extender.is_interested(pod):
                continue
            try:
                await self._run_blocking(lambda extender=extender: extender.bind(pod, node_name))
            except Exception as error:  # An extender may raise anything.
                if not extender.is_ignorable:
                    raise
                _log_skipped(extender, error)
                continue
            return True
        return False


def rows_left(
    name: str, answer: FilterAnswer, rows: npt.NDArray[np.intp], snapshot: Snapshot
) -> npt.NDArray[np.intp]:
    """The rows of the nodes an answer leaves; raises ExtenderError if one was not sent."""
    row_list: list[int] = rows.tolist()
    known = {snapshot.names[row]: row for row in row_list}
    left: list[int] = []
    for node_name in answer.node_names:
        row = known.get(node_name)
        if row is None:
            # Upstream checks only names and accepts an unknown node sent as an object. The pod
            # would be bound to a node that does not exist, so both are refused here.
            raise ExtenderError(
                f'extender "{name}" claims a filtered node "{node_name}" which is not found in the '
                "input node list"
            )
        left.append(row)
    return np.array(left, np.intp)


def _note_failed(statuses: dict[int, Status], answer: FilterAnswer, snapshot: Snapshot) -> None:
    for name, reason in answer.unresolvable.items():
        row = snapshot.row_of(name)
        if row is not None:
            statuses[row] = Status.unresolvable(reason)
    for name, reason in answer.failed.items():
        row = snapshot.row_of(name)
        if row is not None and name not in answer.unresolvable:
            statuses[row] = Status.unschedulable(reason)


def all_scores(
    extenders: Sequence[Extender], pod: Pod, nodes: Sequence[Node], wait: Wait = wait_blocking
) -> list[Sequence[HostScore] | None]:
    """The answers, None for an extender without the verb; the others are called in parallel."""

    def ask(extender: Extender) -> Sequence[HostScore] | None:
        if not extender.has_prioritize_verb:
            return None
        try:
            return extender.prioritize(pod, nodes)
        except Exception as error:  # Spec 04 §13.4: the attempt goes on without its scores.
            inform(log, "Failed to prioritize by extender", v=5, extender=extender.name, err=error)
            return ()

    if sum(extender.has_prioritize_verb for extender in extenders) < 2:
        return [ask(extender) for extender in extenders]
    pool = ThreadPoolExecutor(len(extenders))
    try:
        # All are asked before the first is waited for.
        answers = [pool.submit(ask, extender) for extender in extenders]
        return [wait(answer) for answer in answers]
    finally:
        # Without waiting: a cycle that was cancelled leaves calls behind.
        pool.shutdown(wait=False)


def _log_skipped(extender: Extender, error: Exception) -> None:
    text = "Skipping extender as it returned error and has ignorable flag set"
    inform(log, text, extender=extender.name, err=error)
