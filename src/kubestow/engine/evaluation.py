"""Where `decide` gets filters and scores from: an `Evaluation`.

`PlainEvaluation` asks every plugin in every attempt; the one in `equivalence` reuses answers given
for pods of the same shape. Both give the same answers.
"""

from typing import Protocol

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import Rows
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.equivalence.passing_nodes import PassingNodes
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import Rejections
from kubestow.framework.profile import Profile
from kubestow.framework.runner import (
    PreFilterOutcome,
    Scores,
    Verdicts,
    run_filters,
    run_filters_on_one,
    run_pre_filter,
    run_scores,
)
from kubestow.framework.status import Status
from kubestow.index.nodes import SimulatedNode, nodes_of


class Evaluation(Protocol):
    state: CycleState

    def passing_share(self) -> float:
        """An estimate of the share of nodes that fit; decides how many are filtered at once."""
        ...

    def note_search(self, found_count: int, evaluated_count: int) -> None:
        """Take how many of the nodes that this search looked at fitted, for the next one."""
        ...

    def passes_everywhere(self) -> bool:
        """Whether every node is known to pass the filters. Call `pre_filter` first."""
        ...

    def passes_on(self, row: int) -> bool:
        """Whether this node is known to pass the filters. Call `pre_filter` first."""
        ...

    def rejections(self) -> Rejections | None:
        """The verdicts on all nodes, if it is known that none fits. Call `pre_filter` first."""
        ...

    def passing_nodes(self) -> PassingNodes | None:
        """The nodes that pass, if they are kept; at least one. Call `pre_filter` first."""
        ...

    def status_on(self, row: int) -> Status | None:
        """The verdict on one node without nominated pods; None when it passes."""
        ...

    def depends_on_shape(self) -> bool:
        """Whether every pod of the shape has the same verdicts. Call `pre_filter` first."""
        ...

    def pre_filter(self) -> PreFilterOutcome: ...

    def verdicts(self, rows: Rows) -> Verdicts:
        """Verdicts on these nodes without nominated pods. Read-only."""
        ...

    def scores(self, rows: Rows) -> Scores:
        """Scores of these nodes, which must be all feasible ones."""
        ...


class PlainEvaluation:
    def __init__(self, profile: Profile, pod: PodInfo, snapshot: Snapshot) -> None:
        self.state = CycleState()
        self._profile = profile
        self._pod = pod
        self._snapshot = snapshot

    def passing_share(self) -> float:
        return 1.0

    def note_search(self, found_count: int, evaluated_count: int) -> None:
        """The next attempt knows nothing of this one."""

    def passes_everywhere(self) -> bool:
        return False

    def passes_on(self, row: int) -> bool:
        return False

    def rejections(self) -> Rejections | None:
        return None

    def passing_nodes(self) -> PassingNodes | None:
        return None

    def status_on(self, row: int) -> Status | None:
        node = SimulatedNode(self._snapshot, row)
        return run_filters_on_one(self._profile, self.state, self._pod, node)

    def depends_on_shape(self) -> bool:
        return False

    def pre_filter(self) -> PreFilterOutcome:
        return run_pre_filter(self._profile, self.state, self._pod, nodes_of(self._snapshot))

    def verdicts(self, rows: Rows) -> Verdicts:
        return run_filters(self._profile, self.state, self._pod, nodes_of(self._snapshot, rows))

    def scores(self, rows: Rows) -> Scores:
        return run_scores(self._profile, self.state, self._pod, nodes_of(self._snapshot, rows))
