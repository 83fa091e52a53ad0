"""Compares with the decisions of another scheduler, seen from outside.

`kubestow record` follows a cluster that kube-scheduler schedules. What it decided shows when a pod
gets its node, or the condition that says why it has none. The same pod is then decided on here,
among all nodes, on what that scheduler must have known (`known`): all that was written before, and
the pods that it had decided on. Those that are not bound yet are found in the bindings of the next
seconds (`writes`); a pod that came earlier and has no lower priority was decided on earlier.

If the decisions differ, the pod is tried on what the other scheduler may have known instead. Among
nodes with equal scores it chooses at random, and in a large cluster it scores a part of the nodes.
What none of this explains was decided by other rules.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final, NamedTuple

import msgspec

from kubestow.api.meta import ApiObject
from kubestow.api.pod import Pod, assign, is_assigned, key_of
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.clock import NANOSECONDS, Clock
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.decision import Decision
from kubestow.engine.profiles import Registry
from kubestow.explain.cluster import StillCluster
from kubestow.explain.difference import DecisionDifference, explain_difference, view_of
from kubestow.recording.format import Record
from kubestow.simulator.replay.agreement_report import (
    AgreementCase,
    AgreementReport,
    AgreementTally,
    RulesVerdict,
)
from kubestow.simulator.replay.judging import AgreementFinding, SeenOutcome, compare, outcome_of
from kubestow.simulator.replay.known import KnownCluster, Queued, StepSort, was_tried
from kubestow.simulator.replay.plugin_parts import parts_against
from kubestow.simulator.replay.search import KnowledgeSearch, Move, Sort
from kubestow.simulator.replay.writes import Change, Writes

ALL_NODES_PERCENT: Final = 100
# So long ago may a change be that the scheduler had not learnt of.
UNSEEN_NS: Final = 5 * NANOSECONDS
# As often a pod is tried to explain its decision; less often when many are by other rules.
TRIES_MAX: Final = 1000
CLEAR_COUNT: Final = 100
CLEAR_TRIES_MAX: Final = 200
# Those that say which plugins are against the node. Whether sampling explains its part is known in
# the end only.
_DISPUTED: Final = frozenset((RulesVerdict.OTHER, RulesVerdict.UNDECIDED, RulesVerdict.SAMPLING))


def looking_at_all(config: SchedulerConfig) -> SchedulerConfig:
    """The configuration with every node scored, so that any can be compared."""
    profiles = tuple(
        msgspec.structs.replace(profile, percentage_of_nodes_to_score=None)
        for profile in config.profiles
    )
    return msgspec.structs.replace(
        config, profiles=profiles, percentage_of_nodes_to_score=ALL_NODES_PERCENT
    )


def percentages(config: SchedulerConfig) -> dict[str, int]:
    """How many percent of the nodes each profile scores; 0: it depends on their number."""
    everywhere = config.percentage_of_nodes_to_score
    found = {each.scheduler_name: each.percentage_of_nodes_to_score for each in config.profiles}
    return {name: everywhere if own is None else own for name, own in found.items()}


class AgreementReplay:
    """Follows a recording without attempts: they are found in the changes of pods."""

    def __init__(
        self,
        config: SchedulerConfig,
        gates: FeatureGates,
        registry: Registry,
        clock: Clock,
        *,
        started_ns: int = 0,
        explained: int = 0,
    ) -> None:
        """`started_ns`: when the recording began; `explained`: how many differences say why they
        are."""
        # An empty cluster behind the client: nothing is sent to it.
        client = MemoryClient(MemoryCluster(clock))
        self._cluster = StillCluster(
            looking_at_all(config), client, clock, registry=registry, gates=gates
        )
        self._known = KnownCluster(self._cluster)
        self._started_ns = started_ns
        self._percentages = percentages(config)
        self._explained = explained
        self._writes = Writes((), ())
        # Pods of this scheduler without a node, by UID.
        self._waiting: dict[str, Queued] = {}
        # Pods whose next condition was compared before it was written.
        self._foretold: set[str] = set()
        self._tally = AgreementTally()
        self._unseen = 0

    def run(self, records: Iterable[Record]) -> AgreementReport:
        self._writes = Writes(records, self._cluster.objects.types())
        changes = last_ns = 0
        for change in self._writes:
            changes += 1
            last_ns = max(last_ns, change.at_ns)
            if change.is_gone:
                self._remove(change.new, change.at_ns)
            elif isinstance(change.new, Pod) and self._cluster.profile_of(change.new) is not None:
                self._put_pod(change.new, change.at_ns)
            else:
                self._known.put(change.new, change.at_ns, is_old=self._is_old(change))
        return self._tally.report(
            unseen=self._unseen, changes=changes, duration_s=round(last_ns / NANOSECONDS, 3)
        )

    # --- changes ---

    def _remove(self, like: ApiObject, at_ns: int) -> None:
        old = self._cluster.find(like)
        if isinstance(old, Pod):
            self._waiting.pop(old.metadata.uid, None)
            self._foretold.discard(old.metadata.uid)
        self._known.remove(like, at_ns)

    def _put_pod(self, new: Pod, at_ns: int) -> None:
        old, uid = self._cluster.find(new), new.metadata.uid
        decided: Queued | None = None
        if old is not None and old.metadata.uid != uid:
            self._remove(old, at_ns)
            old = None
        if old is None:
            self._unseen += is_assigned(new)
        elif assumed := self._known.assumed_node(new):
            outcome = outcome_of(assign(old, ""), new)
            if outcome is not None and outcome.node != assumed:
                # It could not be bound; a condition shows it, or another node was found.
                old = assign(old, "")
                self._known.give_up(old, at_ns)
                if outcome.node:
                    self._judge(_Decided(old, new, outcome, self._queued(old)), at_ns)
        elif not is_assigned(old) and (outcome := outcome_of(old, new)) is not None:
            if uid in self._foretold:
                self._foretold.remove(uid)
            else:
                decided = self._queued(old)
                self._judge(_Decided(old, new, outcome, decided), at_ns)
        self._known.put(new, at_ns, decided)
        self._wait(new, is_new=old is None)

    def _is_old(self, change: Change) -> bool:
        """Whether an object was there for long when it was first recorded."""
        created = change.new.metadata.creation_timestamp
        if created is None:
            return False
        return self._started_ns + change.at_ns - created.timestamp() * NANOSECONDS > UNSEEN_NS

    def _wait(self, pod: Pod, *, is_new: bool) -> None:
        uid = pod.metadata.uid
        if is_assigned(pod):
            self._waiting.pop(uid, None)
        elif uid not in self._waiting:
            if not pod.spec.scheduling_gates:
                self._waiting[uid] = Queued.now(pod, self._known.position, is_new=is_new)
        elif was_tried(pod):
            self._waiting[uid] = self._waiting[uid].tried_again()

    def _queued(self, pod: Pod) -> Queued:
        found = self._waiting.get(pod.metadata.uid)
        return Queued(pod, self._known.position, is_ordered=False) if found is None else found

    # --- decisions ---

    def _judge(self, decided: "_Decided", at_ns: int) -> None:
        """Compare a decision, after those that were made before it for sure."""
        for each in self._in_flight(before=decided.queued):
            self._compare_one(each, at_ns)
            if not each.outcome.node:
                self._foretold.add(each.old.metadata.uid)
                self._known.put(each.new, at_ns, each.queued)
        self._compare_one(decided, at_ns)

    def _compare_one(self, decided: "_Decided", at_ns: int) -> None:
        finding = self._finding(decided)
        if finding.agrees:
            verdict, because = RulesVerdict.AGREES, ""
        elif finding.is_best_of_a_sample:
            verdict, because = RulesVerdict.SAMPLING, ""
        else:
            verdict, because = self._explain(decided, at_ns)
        self._conclude(decided, finding, verdict, because, at_ns)

    def _finding(self, decided: "_Decided") -> AgreementFinding:
        percentage = self._percentages[decided.old.spec.scheduler_name]
        return compare(self._cluster.decide(decided.old), decided.outcome, percentage)

    def _conclude(
        self,
        decided: "_Decided",
        finding: AgreementFinding,
        verdict: RulesVerdict,
        because: str,
        at_ns: int,
    ) -> None:
        """Note what was found, and carry the decision out."""
        pod, outcome = decided.old, decided.outcome
        decision = self._cluster.decide(pod)
        case = AgreementCase(
            at_s=round(at_ns / NANOSECONDS, 3),
            pod=key_of(pod),
            verdict=verdict,
            agreement=finding.agreement,
            recorded=outcome.node or outcome.message,
            here=decision.node_name or decision.message,
            behind=finding.behind,
            because=because,
            why=self._why(decision, outcome) if self._is_explained(verdict) else None,
        )
        is_against = verdict in _DISPUTED and bool(outcome.node)
        against = parts_against(decision, outcome.node) if is_against else ()
        self._tally.note(case, finding, against)
        if outcome.node:
            # Explaining it may have asked plugins about other nodes.
            self._known.assume(self._cluster.decide(pod), outcome.node, at_ns, decided.queued)
        else:
            self._waiting[pod.metadata.uid] = decided.queued.tried_again()

    def _is_explained(self, verdict: RulesVerdict) -> bool:
        return verdict in _DISPUTED and self._tally.count(verdict) < self._explained

    def _why(self, decision: Decision, outcome: SeenOutcome) -> DecisionDifference:
        return explain_difference(outcome.node, None, view_of(decision.freeze(), (outcome.node,)))

    def _in_flight(self, before: Queued | None = None) -> list["_Decided"]:
        """What is decided on and not written yet; all, or what was decided before a pod."""
        found: list[_Decided] = []
        for uid in self._writes.pods_ahead():
            queued = self._waiting.get(uid)
            if queued is None or uid in self._foretold:
                continue
            if before is None or queued.is_before(before):
                found.extend(self._next_outcome(queued))
        return sorted(found, key=lambda each: each.queued.position)

    def _next_outcome(self, queued: Queued) -> Iterator["_Decided"]:
        """What is written next of a pod, if it matters to others."""
        last = old = self._cluster.find(queued.pod)
        if old is None or last is None or is_assigned(old):
            return
        for new in self._writes.ahead_of(old.metadata.uid):
            outcome = outcome_of(last, new)
            if outcome is not None:
                if outcome.node or new.status.nominated_node_name:
                    yield _Decided(old, new, outcome, queued)
                return
            last = new

    # --- what it may have known instead ---

    def _explain(self, decided: "_Decided", at_ns: int) -> tuple[RulesVerdict, str]:
        """What explains the decision."""
        is_clear = self._tally.count(RulesVerdict.OTHER) >= CLEAR_COUNT
        search = KnowledgeSearch(
            lambda: self._finding(decided), CLEAR_TRIES_MAX if is_clear else TRIES_MAX
        )
        recent = self._recent(decided, at_ns).items()
        because = search.run([*(Sort(sort, moves) for sort, moves in recent), self._ahead(decided)])
        if because:
            return RulesVerdict.TIMING, because
        return (RulesVerdict.UNDECIDED if search.is_spent else RulesVerdict.OTHER), ""

    def _recent(self, decided: "_Decided", at_ns: int) -> dict[StepSort, list[Move]]:
        """What can be taken back, the last first."""
        found: dict[StepSort, list[Move]] = {sort: [] for sort in StepSort}
        for step in self._known.last_steps():
            if at_ns - step.at_ns > UNSEEN_NS:
                break
            if step.sort is StepSort.PODS and step.position <= decided.queued.position:
                # It was seen before the pod was.
                continue
            if step.decided is not None and step.decided.is_before(decided.queued):
                continue
            if step.like.metadata.uid != decided.old.metadata.uid:
                found[step.sort].append(partial(self._known.take_back, step))
        return found

    def _ahead(self, decided: "_Decided") -> Sort:
        """Pods that it may have decided on before, and bound later."""
        found = [
            partial(self._known.add, each.old, each.outcome.node)
            for each in self._in_flight()
            if each.outcome.node
            and each.old.metadata.uid != decided.old.metadata.uid
            and not decided.queued.is_before(each.queued)
        ]
        return Sort("pods were decided before it that were bound later", found)


class _Decided(NamedTuple):
    """A pod before and after the change that shows what was decided."""

    old: Pod
    new: Pod
    outcome: SeenOutcome
    queued: Queued
