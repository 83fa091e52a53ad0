"""Runs a policy round after round, and follows every pod that it evicts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kubestow import collector
from kubestow.api.files import Document
from kubestow.api.labels import EVERYTHING
from kubestow.api.meta import JsonObject
from kubestow.api.owners import controller_of
from kubestow.api.pod_info import PodInfo
from kubestow.clock import NANOSECONDS, Clock, SystemClock
from kubestow.cluster.documents import value_at
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.input.changes import parse_selector
from kubestow.simulator.input.pods import PodKey, key_of
from kubestow.simulator.rebalance.board import Board
from kubestow.simulator.rebalance.budgets import Budgets
from kubestow.simulator.rebalance.descheduler.evictor import PodFilter, Round, offer
from kubestow.simulator.rebalance.descheduler.judgement import (
    JudgedEviction,
    JudgedRound,
    PolicyJudgement,
)
from kubestow.simulator.rebalance.descheduler.policy import (
    DeschedulerPolicy,
    FailedPodsArgs,
    PolicyProfile,
)
from kubestow.simulator.rebalance.descheduler.strategies import (
    lives,
    spreading,
    utilization,
    violations,
)
from kubestow.simulator.rebalance.descheduler.view import Evict, View
from kubestow.simulator.rebalance.goals.goal import Goal
from kubestow.simulator.rebalance.goals.violations import Violations
from kubestow.simulator.rebalance.ground import Ground, ground_of
from kubestow.simulator.rebalance.options import RebalanceOptions
from kubestow.simulator.rebalance.rules import MovableRules

DEFAULT_ROUNDS: Final = 10
# How often a descheduler runs by default; pods grow older by this in each round.
INTERVAL_S: Final = 300.0

# Any: each strategy takes the arguments of its own plugin.
_Strategy = Callable[[View, Any, Callable[[PodInfo], bool], Evict], None]
_STRATEGIES: Final[Mapping[str, _Strategy]] = {
    "HighNodeUtilization": utilization.high_utilization,
    "LowNodeUtilization": utilization.low_utilization,
    "PodLifeTime": lives.life_time,
    "RemoveDuplicates": spreading.duplicates,
    "RemovePodsHavingTooManyRestarts": lives.restarts,
    "RemovePodsViolatingInterPodAntiAffinity": violations.anti_affinity,
    "RemovePodsViolatingNodeAffinity": violations.node_affinity,
    "RemovePodsViolatingNodeTaints": violations.node_taints,
    "RemovePodsViolatingTopologySpreadConstraint": spreading.topology_spread,
}


def judge_policy(
    documents: Sequence[Document],
    policy: DeschedulerPolicy,
    goal: Goal | None = None,
    setup: PlacingSetup | None = None,
    *,
    rounds: int = DEFAULT_ROUNDS,
    clock: Clock | None = None,
    on_round: Callable[[int], None] = lambda _: None,
) -> PolicyJudgement:
    """What a policy does to a cluster in up to that number of rounds.

    Raises InputError for documents that cannot be used, ConfigError for a policy that does not
    suit them, PluginError if a plugin of the scheduler fails.
    """
    clock = clock or SystemClock()
    ground = ground_of(documents, setup or PlacingSetup(), clock)
    pods = {key_of(one.raw): one.raw for one in documents if one.raw["kind"] == "Pod"}
    with collector.paused():
        judge = _Judge(ground, policy, goal, pods, clock.now_ns() / NANOSECONDS)
        return judge.run(rounds, on_round)


def chosen_once(
    ground: Ground, documents: Sequence[Document], policy: DeschedulerPolicy, now_s: float
) -> list[tuple[str, PodInfo]]:
    """The evictions of one run of a policy, each with its plugin; nothing is carried out."""
    pods = {key_of(one.raw): one.raw for one in documents if one.raw["kind"] == "Pod"}
    return _Chooser(ground, policy, pods).choose(now_s).evicted


class _Judge:
    def __init__(
        self,
        ground: Ground,
        policy: DeschedulerPolicy,
        goal: Goal | None,
        documents: Mapping[PodKey, JsonObject],
        now_s: float,
    ) -> None:
        self._policy = policy
        self._goal = goal
        self._chooser = _Chooser(ground, policy, documents)
        self._now_s = now_s
        # A board follows some figure; without a goal none is shown.
        followed = goal or Violations()
        followed.start(ground)
        self._board = Board(ground.cluster, MovableRules(ground, RebalanceOptions()), followed)

    def run(self, rounds: int, on_round: Callable[[int], None]) -> PolicyJudgement:
        goal = self._goal
        before = None if goal is None else round(goal.figure(), 6)
        judged: list[JudgedRound] = []
        settles_after = None
        for number in range(1, rounds + 1):
            found = self._round(number)
            on_round(number)
            if not found.evictions and not found.failed:
                settles_after = number - 1
                if found.refused:
                    judged.append(found)
                break
            judged.append(found)
        return PolicyJudgement(
            rounds=tuple(judged),
            settles_after=settles_after,
            goal="" if goal is None else goal.text,
            unit="" if goal is None else goal.unit,
            figure_before=before,
            notes=self._policy.notes,
        )

    def _round(self, number: int) -> JudgedRound:
        """Decide on all evictions of a round; then carry them out, one after the other."""
        chosen = self._chooser.choose(self._now_s + INTERVAL_S * (number - 1))
        evictions = tuple(self._carried_out(plugin, pod) for plugin, pod in chosen.evicted)
        goal = self._goal
        return JudgedRound(
            number=number,
            evictions=evictions,
            refused=chosen.refused_count,
            failed=self._chooser.forget_failed(),
            figure_after=None if goal is None else round(goal.figure(), 6),
        )

    def _carried_out(self, plugin: str, pod: PodInfo) -> JudgedEviction:
        found = self._board.displace(pod)
        owner = controller_of(pod.pod)
        self._chooser.forget(pod)
        return JudgedEviction(
            plugin=plugin,
            pod=pod.key,
            owner="" if owner is None else f"{owner.kind}/{owner.name}",
            node=found.from_node,
            outcome=(
                "waits"
                if not found.node
                else "returned"
                if found.node == found.from_node
                else "moved"
            ),
            to_node=found.node,
            message=found.obstacle,
        )


class _Chooser:
    """Lets the plugins of a policy choose pods of a cluster."""

    def __init__(
        self, ground: Ground, policy: DeschedulerPolicy, documents: Mapping[PodKey, JsonObject]
    ) -> None:
        self._ground = ground
        self._policy = policy
        self._documents = dict(documents)
        self._failed_count = 0
        self._nodes = parse_selector(policy.node_selector) if policy.node_selector else EVERYTHING

    def choose(self, now_s: float) -> Round:
        """The evictions of one run on the cluster as it is."""
        infos = self._ground.cluster.refresh().node_infos
        view = View(infos, self._documents, self._nodes, now_s)
        budgets, profiles = Budgets(self._ground), self._policy.profiles
        round_ = Round(self._policy, view, budgets)
        filters = [PodFilter(profile.evictor, self._ground, budgets) for profile in profiles]
        for profile, passes in zip(profiles, filters, strict=True):
            for name, args in profile.descheduling:
                self._offer(name, args, profile, passes, view, round_)
        for profile, passes in zip(profiles, filters, strict=True):
            for name, args in profile.balancing:
                self._offer(name, args, profile, passes, view, round_)
        return round_

    def _offer(
        self,
        name: str,
        args: Any,
        profile: PolicyProfile,
        filters: PodFilter,
        view: View,
        round_: Round,
    ) -> None:
        if isinstance(args, FailedPodsArgs):
            bare = profile.evictor.evict_failed_bare_pods
            self._failed_count += lives.failed_count(view, args, with_bare=bare)
            return
        _STRATEGIES[name](view, args, filters.passes, offer(filters, round_, view, name))

    def forget(self, pod: PodInfo) -> None:
        """The pod is gone; its replacement has no history."""
        self._documents.pop(PodKey.of(pod.pod), None)

    def forget_failed(self) -> int:
        """The number of failed pods that were deleted since the last call."""
        count, self._failed_count = self._failed_count, 0
        if count:
            self._documents = {
                key: raw
                for key, raw in self._documents.items()
                if value_at(raw, "status", "phase") != "Failed"
            }
        return count
