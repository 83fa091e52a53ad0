"""Decides on which node a pod runs: the scheduling cycle as a plain function (spec 04 §3.1 to §9).

    PreFilter → the nominated node first → filter nodes in turn until enough fit → score → choose
                                                 └─ none fits → PostFilter (preemption)

Nothing here waits, talks to the API server or changes the cache. All it needs comes in as
arguments; all it found goes out as a `Decision`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import Rows
from kubestow.cache.nodes import SimulatedNode
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.decision import CLEAR_NOMINATION, Decision, Nomination
from kubestow.engine.select_host import HostSelector
from kubestow.errors import PluginError
from kubestow.framework.diagnosis import PASSED, UNKNOWN, Diagnosis, decode_status
from kubestow.framework.handle import Nominator
from kubestow.framework.profile import Profile
from kubestow.framework.runner import (
    FilterError,
    ScoreError,
    run_filters,
    run_filters_with_nominated,
    run_post_filter,
    run_pre_filter,
    run_scores,
)
from kubestow.framework.status import Code, Status

NO_NODES_TEXT: Final = "no nodes available to schedule pods"
NODES_TO_FIND_MIN: Final = 100
PERCENTAGE_MIN: Final = 5


class Decider:
    """Decides for one pod after the other. Remembers only where the last search ended.

    `next_start_index` is one for all profiles: spec 04 §6.3.
    """

    def __init__(
        self, snapshot: Snapshot, nominator: Nominator, *, percentage_of_nodes_to_score: int = 0
    ) -> None:
        self._snapshot = snapshot
        self._nominator = nominator
        self._percentage = percentage_of_nodes_to_score
        self._selector = HostSelector()
        self.next_start_index = 0

    def decide(self, profile: Profile, pod: PodInfo) -> Decision:
        """Choose a node for the pod on the snapshot as it is."""
        snapshot = self._snapshot
        decision = Decision(pod, profile.name, snapshot.names)
        decision.start_index = self.next_start_index
        if len(snapshot) == 0:
            status = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, error=PluginError(NO_NODES_TEXT))
            return decision.fail(status, CLEAR_NOMINATION)
        error = self._find_feasible(profile, decision)
        if error is not None:
            return decision.fail(error, CLEAR_NOMINATION)
        failed_count = _failed_count(decision.diagnosis)
        decision.evaluated_count = len(decision.feasible) + failed_count
        match len(decision.feasible):
            case 0:
                return self._after_filters_failed(profile, decision)
            case 1:
                decision.node_name = snapshot.names[decision.feasible[0]]
            case _:
                error = self._choose(profile, decision)
                if error is not None:
                    return decision.fail(error, CLEAR_NOMINATION)
        return decision

    # --- feasible nodes ---

    def _find_feasible(self, profile: Profile, decision: Decision) -> Status | None:
        """Fill in the feasible nodes and the verdicts on the others; an Error status ends the
        attempt."""
        state, pod, diagnosis = decision.state, decision.pod, decision.diagnosis
        diagnosis.attach(state, profile.filter)
        outcome = decision.pre_filter = run_pre_filter(profile, state, pod, self._snapshot.view())
        diagnosis.unschedulable_plugins.update(outcome.restricting)
        if outcome.status is not None:
            if not outcome.status.is_rejected:
                return outcome.status
            diagnosis.absent = outcome.status
            diagnosis.pre_filter_message = outcome.status.message
            diagnosis.add_plugin_of(outcome.status)
            return None
        if self._try_nominated_node(profile, decision):
            return None
        candidates = self._candidates(decision)
        decision.nodes_to_find = self._nodes_to_find(profile, len(candidates))
        search = _Search(self._snapshot, profile, decision, self._nominated_rows())
        try:
            return search.run(candidates, self.next_start_index)
        finally:
            decision.feasible = search.found_rows()
            processed = len(decision.feasible) + _failed_count(diagnosis)
            self.next_start_index = (self.next_start_index + processed) % len(self._snapshot)
            diagnosis.note_rejecting_plugins()
            for status in diagnosis.explicit.values():
                diagnosis.add_plugin_of(status)

    def _try_nominated_node(self, profile: Profile, decision: Decision) -> bool:
        """A pod promised a node gets it if it still fits, without looking at any other (spec 04
        §5)."""
        name = decision.pod.pod.status.nominated_node_name
        row = self._snapshot.row_of(name) if name else None
        if row is None:
            return False
        status = run_filters_with_nominated(
            profile,
            decision.state,
            decision.pod,
            SimulatedNode(self._snapshot, row),
            self._nominator.nominated_pods_for_node(name),
        )
        if status is None:
            decision.feasible = np.array([row], np.intp)
            decision.via_nominated_node = True
            decision.diagnosis.failed_by[row] = PASSED
            return True
        if status.is_rejected:
            decision.diagnosis.set_explicit(row, status)
            decision.diagnosis.unschedulable_plugins.add(status.plugin)
        return False

    def _candidates(self, decision: Decision) -> range | npt.NDArray[np.intp]:
        """Rows worth looking at: all, or those PreFilter left, in visiting order."""
        names = decision.pre_filter.node_names
        if names is None:
            return range(len(self._snapshot))
        # Recorded behaviour, beyond spec 04 §6.1: the set that is printed is the set of blamed plugins,
        # so a filter that rejected the nominated node just before is named as well.
        restricting = " ".join(sorted(decision.diagnosis.unschedulable_plugins))
        decision.diagnosis.absent = Status.unresolvable(
            f"node(s) didn't satisfy plugin(s) [{restricting}]"
        )
        rows = (self._snapshot.row_of(name) for name in names)
        return np.array(sorted(row for row in rows if row is not None), np.intp)

    def _nodes_to_find(self, profile: Profile, count: int) -> int:
        """How many feasible nodes are enough (spec 04 §6.2)."""
        if not profile.score:
            return 1
        if count < NODES_TO_FIND_MIN:
            return count
        percentage = profile.percentage_of_nodes_to_score
        if percentage is None:
            percentage = self._percentage
        if percentage == 0:
            percentage = max(50 - count // 125, PERCENTAGE_MIN)
        return max(count * percentage // 100, NODES_TO_FIND_MIN)

    def _nominated_rows(self) -> dict[int, Sequence[PodInfo]]:
        """Nodes that pods are nominated to: these are filtered one by one."""
        rows: dict[int, Sequence[PodInfo]] = {}
        for name in self._nominator.nominated_nodes():
            row = self._snapshot.row_of(name)
            if row is not None:
                rows[row] = self._nominator.nominated_pods_for_node(name)
        return rows

    # --- choosing ---

    def _choose(self, profile: Profile, decision: Decision) -> Status | None:
        nodes = self._snapshot.view(decision.feasible)
        try:
            decision.scores = run_scores(profile, decision.state, decision.pod, nodes)
        except ScoreError as error:
            return error.status
        position = self._selector.select(decision.scores.total)
        decision.node_name = self._snapshot.names[decision.feasible[position]]
        return None

    def _after_filters_failed(self, profile: Profile, decision: Decision) -> Decision:
        """No node fits: ask PostFilter, and put everything into the message (spec 04 §9)."""
        diagnosis = decision.diagnosis
        decision.fit_error_text = diagnosis.message()
        if not profile.post_filter:
            decision.nomination = CLEAR_NOMINATION
            return decision.fail_to_fit()
        result, status = run_post_filter(profile, decision.state, decision.pod, diagnosis)
        decision.post_filter, decision.post_filter_status = result, status
        diagnosis.post_filter_message = status.message
        if result is not None:
            decision.nomination = Nomination(result.nominated_node_name)
        return decision.fail_to_fit()


class _Search:
    """Filters nodes in visiting order, stretch by stretch, until enough fit (spec 04 §6.3).

    A stretch is evaluated as a whole; what lies behind the place where upstream would have stopped
    is thrown away again. Upstream stops at the first feasible node too many, so failures up to
    there count.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        profile: Profile,
        decision: Decision,
        nominated: Mapping[int, Sequence[PodInfo]],
    ) -> None:
        self._snapshot = snapshot
        self._profile = profile
        self._decision = decision
        self._nominated = nominated
        self._wanted = decision.nodes_to_find
        self._found: list[npt.NDArray[np.intp]] = []
        self._found_count = 0
        # A nominated node that failed before the search keeps its verdict even if the search ends
        # early.
        self._kept = dict(decision.diagnosis.explicit)

    def found_rows(self) -> npt.NDArray[np.intp]:
        if len(self._found) == 1:
            return self._found[0]
        return np.concatenate(self._found) if self._found else np.empty(0, np.intp)

    def run(self, candidates: range | npt.NDArray[np.intp], start: int) -> Status | None:
        if len(candidates) == 0:
            return None
        if not self._profile.filter:
            first = _first_at_or_after(candidates, start)
            rows = np.roll(np.asarray(candidates, np.intp), -first)
            self._take(rows[: self._wanted])
            return None
        for rows in self._stretches(candidates, _first_at_or_after(candidates, start)):
            error, is_done = self._look_at(rows)
            if error is not None or is_done:
                return error
        return None

    def _stretches(self, candidates: range | npt.NDArray[np.intp], start: int) -> Iterator[Rows]:
        """The candidates from `start` on, wrapping round, in pieces that tend to be just enough."""
        count = len(candidates)
        size = self._wanted + 1
        position = 0
        while position < count:
            first = (start + position) % count
            length = min(size, count - position, count - first)
            if isinstance(candidates, range):
                yield slice(first, first + length)
            else:
                yield candidates[first : first + length]
            position += length
            size *= 2

    def _look_at(self, rows: Rows) -> tuple[Status | None, bool]:
        """Filter one stretch. Returns an error that ends the attempt, and whether enough were
        found."""
        diagnosis, decision = self._decision.diagnosis, self._decision
        try:
            verdicts = run_filters(
                self._profile, decision.state, decision.pod, self._snapshot.view(rows)
            )
        except FilterError as error:
            return error.status, True
        diagnosis.failed_by[rows] = verdicts.failed_by
        diagnosis.codes[rows] = verdicts.codes
        numbers = _row_numbers(rows)
        for row in _common(diagnosis.explicit, numbers):
            # Looked at a second time: the verdict of now replaces the one from before the search.
            del diagnosis.explicit[row]
        if self._nominated:
            self._look_again_at_nominated(numbers)
        failed_by = diagnosis.failed_by[rows]
        passed = np.flatnonzero(failed_by == PASSED)
        missing = self._wanted - self._found_count
        end = len(numbers) if len(passed) <= missing else int(passed[missing])
        error, end = self._first_error(numbers, failed_by, end)
        self._take(numbers[passed[passed < end]][:missing])
        self._forget(numbers[end:])
        return error, end < len(numbers)

    def _look_again_at_nominated(self, numbers: npt.NDArray[np.intp]) -> None:
        diagnosis, decision = self._decision.diagnosis, self._decision
        for row in numbers[np.isin(numbers, list(self._nominated))].tolist():
            status = run_filters_with_nominated(
                self._profile,
                decision.state,
                decision.pod,
                SimulatedNode(self._snapshot, row),
                self._nominated[row],
            )
            if status is None:
                diagnosis.failed_by[row] = PASSED
            else:
                diagnosis.set_explicit(row, status)

    def _first_error(
        self,
        numbers: npt.NDArray[np.intp],
        failed_by: npt.NDArray[np.int16],
        end: int,
    ) -> tuple[Status | None, int]:
        """The first node of the stretch whose filter failed rather than rejected, if before
        `end`."""
        diagnosis = self._decision.diagnosis
        failed = np.flatnonzero((diagnosis.codes[numbers[:end]] < 0) & (failed_by[:end] >= 0))
        position = int(failed[0]) if len(failed) else end
        for row, status in diagnosis.explicit.items():
            if status.code == Code.ERROR:
                places = np.flatnonzero(numbers[:position] == row)
                position = int(places[0]) if len(places) else position
        if position == end:
            return None, end
        row = int(numbers[position])
        explicit = diagnosis.explicit.get(row)
        if explicit is not None:
            return explicit, position
        plugin = self._profile.filter[int(diagnosis.failed_by[row])]
        status = decode_status(plugin, self._decision.state, int(diagnosis.codes[row]))
        return status, position

    def _take(self, rows: npt.NDArray[np.intp]) -> None:
        if len(rows):
            self._found.append(rows)
            self._found_count += len(rows)

    def _forget(self, rows: npt.NDArray[np.intp]) -> None:
        """Throw away verdicts upstream would not have reached."""
        diagnosis = self._decision.diagnosis
        diagnosis.failed_by[rows] = UNKNOWN
        for row in _common(diagnosis.explicit, rows):
            del diagnosis.explicit[row]
        for row in _common(self._kept, rows):
            diagnosis.explicit[row] = self._kept[row]


def _row_numbers(rows: Rows) -> npt.NDArray[np.intp]:
    return np.arange(rows.start, rows.stop, dtype=np.intp) if isinstance(rows, slice) else rows


def _first_at_or_after(candidates: range | npt.NDArray[np.intp], start: int) -> int:
    """Where in the candidates the search begins, going round the cluster from row `start`.

    Upstream walks candidates that PreFilter restricted in random order; this one is as good as any.
    """
    if isinstance(candidates, range):
        return start % len(candidates)
    return int(np.searchsorted(candidates, start)) % len(candidates)


def _common(statuses: Mapping[int, Status], rows: npt.NDArray[np.intp]) -> set[int]:
    return statuses.keys() & set(rows.tolist()) if statuses else set()


def _failed_count(diagnosis: Diagnosis) -> int:
    """Nodes with a verdict of their own that is not a pass."""
    return int(np.count_nonzero(diagnosis.failed_by >= 0)) + len(diagnosis.explicit)
