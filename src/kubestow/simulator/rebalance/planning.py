"""Makes a plan: the cluster and the goal in, the steps with their proof out."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Final

from kubestow import collector
from kubestow.api.files import Document
from kubestow.api.owners import controller_of
from kubestow.api.pod_info import PodInfo
from kubestow.clock import Clock, SystemClock
from kubestow.plural import counted
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.rebalance.actions import PlanAction, do, move_count
from kubestow.simulator.rebalance.board import Board, Evicted, alike
from kubestow.simulator.rebalance.budgets import Budgets
from kubestow.simulator.rebalance.candidates import MovablePods
from kubestow.simulator.rebalance.goals.empty_nodes import keeps_node
from kubestow.simulator.rebalance.goals.goal import TOLERANCE, Goal
from kubestow.simulator.rebalance.ground import Ground, ground_of
from kubestow.simulator.rebalance.options import RebalanceOptions
from kubestow.simulator.rebalance.plan import (
    EvictedPod,
    KeptPods,
    PlanStep,
    RebalancePlan,
    WaitingPlaced,
)
from kubestow.simulator.rebalance.rules import MovableRules
from kubestow.simulator.rebalance.search import MoveSearch
from kubestow.simulator.rebalance.stopping import Stopping
from kubestow.simulator.rebalance.surging import Surges
from kubestow.simulator.rebalance.timing import step_times

# Names of pods for one reason.
EXAMPLES: Final = 20
# Of pods that are not alike, for what limits a plan.
LIMIT_TRIALS: Final = 300
# Fewer nodes are all looked at in every attempt.
_ALL_NODES: Final = 100
NOT_BETTER: Final = "it can be moved, but the figure does not get better"


def make_plan(
    documents: Sequence[Document],
    goal: Goal,
    options: RebalanceOptions,
    setup: PlacingSetup | None = None,
    *,
    clock: Clock | None = None,
    stopping: Stopping | None = None,
    on_step: Callable[[int], None] = lambda _: None,
) -> RebalancePlan:
    """Look for the steps that make the goal's figure better.

    Raises InputError for documents or a goal that cannot be used, PluginError if a plugin fails.
    `stopping` ends the search early; `on_step` is called with the number of evictions so far.
    """
    clock = clock or SystemClock()
    stopping = stopping or Stopping(clock, options.time_limit_s)
    ground = ground_of(documents, setup or PlacingSetup(), clock)
    with collector.paused():
        return Planner(ground, goal, options, stopping, on_step).plan()


class Planner:
    """The parts of a plan, connected. `board` is as the cluster is whenever no method runs."""

    def __init__(
        self,
        ground: Ground,
        goal: Goal,
        options: RebalanceOptions,
        stopping: Stopping,
        on_step: Callable[[int], None] = lambda _: None,
    ) -> None:
        goal.start(ground)
        self._ground = ground
        self._options = options
        self._stopping = stopping
        self.rules: Final = MovableRules(ground, options)
        budgets = Budgets(ground)
        surges = Surges(ground, budgets, is_wanted=options.surges)
        self.board: Final = Board(ground.cluster, self.rules, goal, surges)
        self.candidates: Final = MovablePods(self.board, self.rules, budgets, surges)
        self._search = MoveSearch(self.board, self.candidates, options, stopping, on_step)

    def plan(self) -> RebalancePlan:
        return self.written(self._search.run())

    def written(self, actions: Sequence[PlanAction]) -> RebalancePlan:
        """Do the actions once more, and write down each."""
        board = self.board
        mark = board.mark()
        before, used_before = board.goal.figure(), set(self._used_nodes())
        steps = tuple(self._steps(actions))
        after, used_after = board.goal.figure(), set(self._used_nodes())
        trials = board.trial_count
        limits = [] if self._is_done(after) else list(_grouped(self._limits(move_count(actions))))
        board.undo(mark)
        return RebalancePlan(
            goal=board.goal.text,
            unit=board.goal.unit,
            more_is_better=board.goal.is_more_better,
            figure_before=_rounded(before),
            figure_after=_rounded(after),
            moves=move_count(actions),
            steps=steps,
            freed_nodes=tuple(sorted(used_before - used_after)),
            duration_s=steps[-1].ends_at_s if steps else 0.0,
            kept=tuple(_grouped(self._kept())),
            limits=tuple(limits),
            notes=tuple(self._notes()),
            trials=trials,
            stopped=self._stopping.reason,
        )

    def _steps(self, actions: Iterable[PlanAction]) -> Iterator[PlanStep]:
        goal, now_s = self.board.goal, 0.0
        number = 0
        for action in actions:
            before, search_start = _rounded(goal.figure()), self.board.start_index
            found = do(self.board, action)
            assert found is None or not found.obstacle, found
            moves = (None,) if found is None else found.moves
            end_s = now_s + max(0.0 if move is None else self._length_s(move) for move in moves)
            for move in moves:
                number += 1
                yield PlanStep(
                    number=number,
                    action="surge" if move is not None and move.scaled else action.kind,
                    node=action.node if move is None else move.from_node,
                    pod=None if move is None else _planned(move.pod),
                    to_node="" if move is None else move.node,
                    gang="" if found is None else found.gang,
                    waits_for_end=move is not None and move.waits_for_end,
                    scaled=None if move is None else move.scaled,
                    figure_before=before,
                    figure_after=_rounded(goal.figure()),
                    starts_at_s=now_s,
                    ends_at_s=end_s,
                    also_placed=tuple(
                        WaitingPlaced(pod=each.pod, node=each.node)
                        for each in (found.also if found and move is moves[-1] else ())
                    ),
                    search_start=search_start,
                )
            now_s = end_s

    def _length_s(self, found: Evicted) -> float:
        return step_times(
            found.pod.pod,
            "beforehand" if found.scaled else self.rules.replaced(found.pod.pod),
            waits_for_end=found.waits_for_end,
            default_start_s=self._options.start_s,
        ).end_s

    def _used_nodes(self) -> Iterator[str]:
        for info in self.board.cluster.refresh().node_infos:
            if any(keeps_node(pod.pod) for pod in info.pods):
                yield info.name

    def _is_done(self, figure: float) -> bool:
        """Whether the figure cannot get better: nothing is left that it counts."""
        goal = self.board.goal
        return not goal.is_more_better and abs(figure) <= TOLERANCE

    # --- What stays -----------------------------------------------------------------------------

    def _kept(self) -> Iterator[tuple[PodInfo, str]]:
        for info in self.board.cluster.snapshot.node_infos:
            for pod in info.pods:
                if reason := self.candidates.reason(pod):
                    yield pod, reason

    def _limits(self, moves: int) -> Iterator[tuple[PodInfo, str]]:
        """Why no further pod is evicted, on the state that the steps leave.

        Pods that are alike are tried once; of many, those whose trials met an obstacle first.
        """
        obstacles = self.candidates.obstacles
        likes: dict[Hashable, list[PodInfo]] = {}
        for pod in self.candidates.movable():
            likes.setdefault(alike(pod), []).append(pod)
        groups = sorted(
            likes.values(), key=lambda pods: all(pod.uid not in obstacles for pod in pods)
        )
        # A search that was cut short may have left moves that help.
        is_cut = moves >= self._options.max_moves or bool(self._stopping.reason)
        for pods in groups[:LIMIT_TRIALS]:
            reason = self._obstacle(pods[0]) or ("" if is_cut else NOT_BETTER)
            if reason:
                yield from ((pod, reason) for pod in pods)

    def _obstacle(self, pod: PodInfo) -> str:
        """What keeps a pod from being evicted now; where nodes are cleared, from a closed node."""
        mark = self.board.mark()
        if self.board.goal.clears_nodes:
            self.board.close(pod.pod.spec.node_name)
        obstacle = self.board.evict(pod).obstacle
        self.board.undo(mark)
        return obstacle

    def _notes(self) -> Iterator[str]:
        ground = self._ground
        if ground.placed_count:
            pods = counted(ground.placed_count, "pod")
            yield f"placed first, because they waited in the input: {pods}"
        yield from self._unmatched()
        node_count = len(ground.cluster.snapshot)
        share = ground.cluster.config.percentage_of_nodes_to_score
        if node_count > _ALL_NODES and share != 100:
            yield (
                f"the scheduler looks at a part of the {node_count} nodes for each pod, and where "
                "it begins depends on the pods before; with percentageOfNodesToScore: 100 it looks "
                "at all of them"
            )

    def _unmatched(self) -> Iterator[str]:
        """What was to stay, or to be moved, and is not there: a name may be misspelt."""
        options, infos = self._options, self._ground.cluster.snapshot.node_infos
        pods = [pod for info in infos for pod in info.pods]
        namespaces = {pod.namespace for pod in pods}
        for name in options.excluded_namespaces:
            if name not in namespaces:
                yield f'the namespace "{name}", which is excluded, has no pods on nodes'
        unmatched = sum(
            not any(selector.matches(pod.pod.metadata.labels) for pod in pods)
            for selector in options.excluded_selectors
        )
        if unmatched:
            yield f"no pod has the labels of {counted(unmatched, 'excluded selector')}"
        chosen = options.node_selector
        if chosen is not None and not any(
            chosen.matches(node.metadata.labels) for node in self._ground.cluster.objects.nodes
        ):
            yield "no node has the labels of those chosen, so every pod stays"


def _planned(pod: PodInfo) -> EvictedPod:
    owner = controller_of(pod.pod)
    return EvictedPod(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        owner="" if owner is None else f"{owner.kind}/{owner.name}",
    )


def _grouped(pods: Iterable[tuple[PodInfo, str]]) -> Iterator[KeptPods]:
    """Pods by their reason, the one with the most pods first."""
    by_reason: dict[str, list[PodInfo]] = {}
    for pod, reason in pods:
        by_reason.setdefault(reason, []).append(pod)
    for reason, found in sorted(by_reason.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        keys = sorted(pod.key for pod in found)
        yield KeptPods(
            reason=reason,
            pods=len(found),
            nodes=len({pod.pod.spec.node_name for pod in found}),
            examples=tuple(keys[:EXAMPLES]),
        )


def _rounded(figure: float) -> float:
    return round(figure, 6)
