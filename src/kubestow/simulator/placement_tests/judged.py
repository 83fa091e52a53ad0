"""What a judge reads: the objects of a cluster as they are now, and their history.

`PlacedCluster` is the one that is played in memory. The control-plane tests have another, which
follows a real API server: the same judge reads both.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from kubestow.api.files import Document
from kubestow.api.group import GroupKey
from kubestow.api.node import Node
from kubestow.api.pod import Pod, first_condition, is_terminating
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.cluster.documents import value_at
from kubestow.cluster.resources import NODES, PODS, ApiResource
from kubestow.simulator.placement_tests.cases import CaseStep, Expectation, PlacementCase
from kubestow.simulator.placement_tests.history import History, is_live
from kubestow.simulator.placement_tests.results import PODS_NAMED, ExpectationVerdict
from kubestow.simulator.pod_owner import controllers_above
from kubestow.simulator.scenario.actions import NodeTarget, PodTarget

# Workloads that ask for a number of pods.
_WITH_REPLICAS: Final = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")


class CopiesThatFit(NamedTuple):
    """How many copies fit, and why the next one does not."""

    copies: int
    message: str


class Gang(NamedTuple):
    """The group of a pod, and how many members it needs."""

    key: GroupKey
    min_count: int


class JudgedCluster(ABC):
    """The cluster of a case at rest."""

    def __init__(self, case: PlacementCase, store: MemoryCluster, history: History) -> None:
        self.case = case
        self.store = store
        self.history = history

    # --- What differs -------------------------------------------------------------------------

    @abstractmethod
    def act(self, step: CaseStep) -> None:
        """Do what a step does, and wait until nothing is left to do."""

    @abstractmethod
    def gang_of(self, pod: Pod) -> Gang | None:
        """The gang of a pod; InputError if the case does not have gangs."""

    @abstractmethod
    def fit(self, copies: Sequence[Document], copies_max: int) -> CopiesThatFit:
        """How many copies of objects fit besides what is there; the cluster is as before then."""

    @abstractmethod
    def refusals(self) -> Mapping[str, str]:
        """Why controllers could not create pods, by their names."""

    # --- Judging ------------------------------------------------------------------------------

    def judge(self, expectation: Expectation) -> ExpectationVerdict:
        """The verdict on an expectation as things are now."""
        finding = expectation.judge(self)
        verdict = ExpectationVerdict(
            kind=expectation.kind,
            field=expectation.field,
            line=expectation.line,
            expected=expectation.text,
            holds=finding is None,
        )
        if finding is None:
            return verdict
        return msgspec.structs.replace(
            verdict,
            found=finding.text,
            short=finding.short or finding.text,
            pods=tuple(finding.pods[:PODS_NAMED]),
        )

    # --- Reading ------------------------------------------------------------------------------

    def pods(self, target: PodTarget) -> list[Pod]:
        """The pods of a target that have not ended and are not ending."""
        if target.owner is None or target.owner.startswith("Pod/"):
            found = [stored.typed for stored in target.choose(self.store)]
            return [pod for pod in found if isinstance(pod, Pod) and is_live(pod)]
        keys = [
            key
            for uid in self._controllers(target)
            for key in self.history.by_controller.get(uid, {}).values()
        ]
        stored = (self.store.find(PODS, *key) for key in keys)
        only = target._replace(owner=None)
        return [
            each.typed
            for each in stored
            if each is not None and isinstance(each.typed, Pod) and only.matches(self.store, each)
        ]

    def all_pods(self) -> list[Pod]:
        """All pods that have not ended and are not ending."""
        return self.pods(PodTarget())

    def waiting(self, target: PodTarget | None = None) -> list[Pod]:
        """The pods of a target that wait for a node."""
        if target is not None and target != PodTarget():
            return [pod for pod in self.pods(target) if not pod.spec.node_name]
        stored = (self.store.find(PODS, *key) for key in self.history.waiting.values())
        return [each.typed for each in stored if each is not None and isinstance(each.typed, Pod)]

    def nodes(self, target: NodeTarget | None = None) -> list[Node]:
        """The nodes of a target, by name."""
        chosen = sorted(self.store.objects_of(NODES), key=lambda stored: stored.name)
        found = [each.typed for each in chosen if isinstance(each.typed, Node)]
        return [
            node
            for node in found
            if target is None or is_node_of(target, node.metadata.name, node.metadata.labels)
        ]

    def short_workloads(self, target: PodTarget | None = None) -> Iterator[tuple[str, int, str]]:
        """Workloads with fewer pods than they ask for: name, how many are missing, why if that is
        known."""
        refusals = self.refusals()
        for kind in _WITH_REPLICAS:
            for stored in self.store.objects_of(self._resource(kind)):
                if kind == "ReplicaSet" and any(self._above(stored)):
                    continue
                name = f"{kind}/{stored.name}"
                if target is not None and not _is_owner_of(target, stored, name):
                    continue
                missing = _replicas(stored, "spec", 1) - self._pod_count(kind, stored)
                if missing > 0:
                    yield name, missing, refusals.get(name, "") or self._ending(name, stored)
        for owner, message in refusals.items():
            # Those of other kinds have no number of replicas.
            kind = owner.partition("/")[0]
            if kind not in _WITH_REPLICAS and (target is None or target.owner == owner):
                yield owner, 1, message

    def _pod_count(self, kind: str, stored: StoredObject) -> int:
        """How many pods a workload has, without those that are ending."""
        if kind == "StatefulSet":
            # Its status counts pods that are ending, and one on a lost node is not replaced.
            return len(self.history.by_controller.get(stored.uid, ()))
        return _replicas(stored, "status", 0)

    def _ending(self, name: str, stored: StoredObject) -> str:
        """A pod of a workload that is ending and not gone, in words; empty without one."""
        for lost in self.history.lost:
            if name not in lost.owners or lost.namespace != stored.key[0]:
                continue
            found = self.store.find(PODS, lost.namespace, lost.name)
            if found is not None and isinstance(found.typed, Pod) and is_terminating(found.typed):
                return f"{lost.name} is still ending on {lost.node}"
        return ""

    def owner_of(self, pod: Pod) -> str:
        """The topmost controller of a pod; empty if it has none."""
        stored = self.store.find(PODS, pod.metadata.namespace, pod.metadata.name)
        names = [] if stored is None else list(self._above(stored))
        return names[-1] if names else ""

    def known_owners(self) -> list[str]:
        """The names of what makes pods, for hints."""
        kinds = (*_WITH_REPLICAS, "DaemonSet", "Job", "CronJob")
        return [
            f"{kind}/{stored.name}"
            for kind in kinds
            for stored in self.store.objects_of(self._resource(kind))
        ]

    def _above(self, stored: StoredObject) -> Iterator[str]:
        for each in controllers_above(self.store, stored.document, stored.key[0]):
            yield each.name

    def _resource(self, kind: str) -> ApiResource:
        return next(each for each in self.store.resources if each.kind == kind)

    def _controllers(self, target: PodTarget) -> list[str]:
        """The UIDs of the owner of a target, and of what it controls."""
        kind, _, name = (target.owner or "").partition("/")
        found = [
            stored.uid
            for stored in self.store.objects_of(self._resource(kind))
            if stored.name == name and target.namespace in (None, stored.key[0])
        ]
        for below in {"Deployment": ("ReplicaSet",), "CronJob": ("Job",)}.get(kind, ()):
            owners = set(found)
            found += [
                stored.uid
                for stored in self.store.objects_of(self._resource(below))
                if any(
                    reference.get("uid") in owners
                    for reference in stored.metadata.get("ownerReferences") or ()
                )
            ]
        return found


def is_node_of(target: NodeTarget, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a target has this node."""
    if target.name is not None:
        return target.name == name
    return target.selector is None or target.selector.matches(labels)


def message_of(pod: Pod) -> str:
    """Why a pod waits, in the words of its condition."""
    if pod.spec.scheduling_gates:
        return "it has scheduling gates: " + ", ".join(g.name for g in pod.spec.scheduling_gates)
    condition = first_condition(pod.status.conditions, "PodScheduled")
    return "" if condition is None else condition.message


def _is_owner_of(target: PodTarget, stored: StoredObject, name: str) -> bool:
    if target.owner != name:
        return False
    return target.namespace in (None, stored.key[0])


def _replicas(stored: StoredObject, part: str, default: int) -> int:
    value = value_at(stored.document, part, "replicas")
    return default if value is None else int(value)
