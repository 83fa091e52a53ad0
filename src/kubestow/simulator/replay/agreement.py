"""Compares with the decisions of another scheduler, seen from outside.

`kubestow record` follows a cluster that kube-scheduler schedules. What it decided shows when a pod
gets its node, or the condition that says why it has none. At that moment the same pod is decided
on here, among all nodes, and the results are compared.

Both do not see the same cluster: kube-scheduler knows the pods that it has just placed before their
bindings are seen, and not yet the changes that it learns of a little later. Among nodes with equal
scores it chooses at random, and in a large cluster it looks at a part of the nodes only.
"""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

from kubestow.api.decode import decode_json
from kubestow.api.meta import ApiObject, ObjectMeta
from kubestow.api.pod import Pod, first_condition
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.clock import NANOSECONDS, Clock
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.decision import Decision
from kubestow.engine.failure import POD_SCHEDULED, REASON_UNSCHEDULABLE
from kubestow.engine.profiles import Registry
from kubestow.explain.cluster import StillCluster
from kubestow.explain.difference import DecisionDifference, explain_difference, view_of
from kubestow.recording.format import Put, Record, Removed, kind_of

# More are counted, but not kept.
CASES_MAX: Final = 1000
ALL_NODES_PERCENT: Final = 100


class Agreement(StrEnum):
    """How a decision of the other scheduler compares with the one made here."""

    SAME = "same"
    TIE = "tie"  # another node, with the same score
    LOWER = "lower score"  # its node fits, but another one scores higher
    MISFIT = "does not fit"  # its node does not fit here
    PENDING = "pending here"  # it found a node, here none fits
    PLACED = "placed here"  # it found none, here one fits
    MESSAGE = "other reason"  # neither found one, and the messages differ


AGREEING: Final = frozenset((Agreement.SAME, Agreement.TIE))


class AgreementCase(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One decision that differs.

    recorded   the node, or the message of the condition; `here` the same of the decision made here
    behind     by how much the score of its node is lower
    why        what made the difference here, for as many as were asked for
    """

    at_s: float
    pod: str
    agreement: Agreement
    recorded: str
    here: str
    behind: int = 0
    why: DecisionDifference | None = None


class AgreementReport(msgspec.Struct, kw_only=True, rename="camel"):
    """How far two schedulers agree.

    counts        of decisions, by agreement
    unseen        pods that had a node when they were first seen: nothing to compare
    """

    counts: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    cases: list[AgreementCase] = msgspec.field(default_factory=list[AgreementCase])
    unseen: int = 0
    changes: int = 0
    duration_s: float = 0.0
    cut_at: int | None = None

    @property
    def decisions(self) -> int:
        return sum(self.counts.values())

    @property
    def agreeing(self) -> int:
        return sum(self.counts.get(agreement, 0) for agreement in AGREEING)

    def note(self, case: AgreementCase) -> None:
        self.counts = dict(Counter(self.counts) + Counter([case.agreement.value]))
        if case.agreement not in AGREEING and len(self.cases) < CASES_MAX:
            self.cases.append(case)


def looking_at_all(config: SchedulerConfig) -> SchedulerConfig:
    """The same configuration; every node is scored, so that any can be compared."""
    profiles = tuple(
        msgspec.structs.replace(profile, percentage_of_nodes_to_score=None)
        for profile in config.profiles
    )
    return msgspec.structs.replace(
        config, profiles=profiles, percentage_of_nodes_to_score=ALL_NODES_PERCENT
    )


class AgreementReplay:
    """Follows a recording without attempts: they are found in the changes of pods."""

    def __init__(
        self,
        config: SchedulerConfig,
        gates: FeatureGates,
        registry: Registry,
        clock: Clock,
        *,
        explained: int = 0,
    ) -> None:
        """`explained`: how many differences say why they are."""
        # An empty cluster behind the client: nothing is sent to it.
        client = MemoryClient(MemoryCluster(clock))
        self._cluster = StillCluster(
            looking_at_all(config), client, clock, registry=registry, gates=gates
        )
        self._explained = explained
        self.report = AgreementReport()

    def run(self, records: Iterable[Record]) -> AgreementReport:
        for record in records:
            cls = kind_of(record.kind) if isinstance(record, Put | Removed) else None
            if cls is None or cls not in self._cluster.objects.types():
                continue
            self.report.changes += 1
            self.report.duration_s = round(record.at_ns / NANOSECONDS, 3)
            if isinstance(record, Put):
                self._put(decode_json(cls, record.text), record.at_ns)
            elif isinstance(record, Removed):
                self._cluster.remove(
                    cls(metadata=ObjectMeta(namespace=record.namespace, name=record.name))
                )
        return self.report

    def _put(self, new: ApiObject, at_ns: int) -> None:
        if isinstance(new, Pod):
            self._compare_with(new, at_ns)
        self._cluster.put(new)

    def _compare_with(self, new: Pod, at_ns: int) -> None:
        if self._cluster.profile_of(new) is None:
            return
        old = self._cluster.find(new)
        if old is None or old.metadata.uid != new.metadata.uid:
            self.report.unseen += bool(new.spec.node_name)
            return
        if old.spec.node_name:
            return
        message = _message_of(new)
        if new.spec.node_name or (message and message != _message_of(old)):
            self.report.note(self._case(old, new.spec.node_name, message, at_ns))

    def _case(self, pod: Pod, node: str, message: str, at_ns: int) -> AgreementCase:
        decision = self._cluster.decide(pod)
        agreement, behind = (
            _of_node(decision, node) if node else (_of_message(decision, message), 0)
        )
        why = None
        if agreement not in AGREEING and len(self.report.cases) < self._explained:
            why = explain_difference(node, None, view_of(decision.freeze(), (node,)))
        return AgreementCase(
            at_s=round(at_ns / NANOSECONDS, 3),
            pod=f"{pod.metadata.namespace}/{pod.metadata.name}",
            agreement=agreement,
            recorded=node or message,
            here=decision.node_name or decision.message,
            behind=behind,
            why=why,
        )


def _message_of(pod: Pod) -> str:
    condition = first_condition(pod.status.conditions, POD_SCHEDULED)
    if condition is None or condition.reason != REASON_UNSCHEDULABLE:
        return ""
    return condition.message


def _of_message(decision: Decision, message: str) -> Agreement:
    if decision.is_scheduled:
        return Agreement.PLACED
    return Agreement.SAME if decision.message == message else Agreement.MESSAGE


def _of_node(decision: Decision, node: str) -> tuple[Agreement, int]:
    """How the node compares with the one chosen, and by how much its score is lower."""
    if decision.node_name == node:
        return Agreement.SAME, 0
    if not decision.is_scheduled:
        return Agreement.PENDING, 0
    names = decision.node_names
    rows: list[int] = decision.feasible.tolist()
    position = {names[row]: position for position, row in enumerate(rows)}
    if node not in position:
        return Agreement.MISFIT, 0
    if decision.scores is None:
        return Agreement.TIE, 0
    totals = decision.scores.total
    behind = int(totals[position[decision.node_name]] - totals[position[node]])
    return (Agreement.LOWER, behind) if behind else (Agreement.TIE, 0)
