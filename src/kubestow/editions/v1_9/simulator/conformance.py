"""Replays decisions recorded from v1.9 and compares (the format is described with the recordings).

Every attempt starts from the state of the recording, not from our own last choice. Reasons are
compared without order: upstream runs predicates in the order of a hash map.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from kubestow.api.decode import KINDS, convert, is_map
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod, is_terminal
from kubestow.api.resources import Resources
from kubestow.cache.cache import Cache
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.editions.shared.policy import (
    DEFAULT_PROVIDER,
    Policy,
    PredicatePolicy,
    PriorityPolicy,
    convert_policy,
    provider_policy,
)
from kubestow.editions.v1_9.engine.algorithm import Algorithm, WeightedPriority, build_algorithm
from kubestow.editions.v1_9.engine.decide import (
    DeciderV19,
    DecisionV19,
    ScoringError,
    prioritize,
    score_by,
)
from kubestow.editions.v1_9.plugins.contract import Attempt, LegacyCluster, Verdicts
from kubestow.editions.v1_9.plugins.pod import NVIDIA_GPU, PodInfoV19, is_counted
from kubestow.editions.v1_9.plugins.reasons import FITS, reasons_of
from kubestow.index.nodes import nodes_of
from kubestow.simulator.conformance.report import Comparer, Report
from kubestow.simulator.recorded_parts import CHOICES, CLUSTER, MESSAGES, SCORES, VERDICTS

_KINDS: Final[Mapping[str, str]] = {
    "services": "Service",
    "replicationcontrollers": "ReplicationController",
    "replicasets": "ReplicaSet",
    "statefulsets": "StatefulSet",
    "pvs": "PersistentVolume",
    "pvcs": "PersistentVolumeClaim",
}
# A term in Go's print format inside an error; only the text around it is compared.
_PRINTED_TERM: Final = re.compile(r"because of PodAffinityTerm .*?, err:")


def replay_v1_9(scenario: JsonObject, report: Report) -> None:
    """Replay one scenario and count what differs."""
    # The families have the same names as those of v1.36; the prefix distinguishes them.
    family, name = f"v1.9 {scenario['family']}", scenario["name"]
    world = LegacyWorld(scenario)
    _compare_world(report.comparer(family, name), scenario, world)
    for expected in scenario["expected"]:
        comparer = report.comparer(family, name, expected["pod"])
        comparer.count_pod()
        world.snapshot.refresh(world.cache)
        pod = world.incoming[expected["pod"]]
        world.decider.last_node_index = expected["lastNodeIndex"]
        decision = world.decider.decide(pod)
        _compare_attempt(comparer, expected, world, decision)
        node_name = expected.get("result", {}).get("node")
        if node_name:
            world.cache.assume_pod(pod.assigned_to(node_name))


class LegacyWorld:
    """Cache, stores and algorithms of one scenario.

    `algorithm` has the rules in use, `recorded` those and all others that were recorded.
    """

    def __init__(self, scenario: JsonObject) -> None:
        self.objects = ClusterObjects()
        self.cache = Cache()
        self.snapshot = Snapshot()
        self.incoming: dict[str, PodInfoV19] = {}
        self._load(scenario)
        self.cluster = LegacyCluster(self.cache, self.objects)
        config = scenario["config"]
        self.algorithm = _algorithm_of(config, _policy_of(config))
        self.recorded = _algorithm_of(config, _policy_of_all(scenario))
        self.decider = DeciderV19(self.snapshot, self.cluster, self.algorithm)
        self.snapshot.refresh(self.cache)

    def _load(self, scenario: JsonObject) -> None:
        recorded: Mapping[str, list[JsonObject]] = scenario["objects"]
        for key, kind in _KINDS.items():
            self.objects.put(*_typed(kind, recorded.get(key, ())))
        for node in _typed("Node", recorded.get("nodes", ())):
            assert isinstance(node, Node)
            self.cache.add_node(node)
        for pod in _typed("Pod", recorded.get("pods", ())):
            assert isinstance(pod, Pod)
            if not is_terminal(pod):
                self.cache.add_pod(PodInfoV19(pod))
        for pod in _typed("Pod", scenario["incoming"]):
            assert isinstance(pod, Pod)
            info = PodInfoV19(pod)
            self.incoming[info.key] = info


def _typed(kind: str, documents: Iterable[JsonObject]) -> list[ApiObject]:
    return [convert(KINDS[kind], document) for document in documents]


# --- algorithms ---


def _policy_of(config: JsonObject) -> Policy:
    if "policy" in config:
        return convert_policy(config["policy"])
    return provider_policy(config.get("provider", DEFAULT_PROVIDER))


def _policy_of_all(scenario: JsonObject) -> Policy:
    """All recorded rules: those in use, other registered ones, and custom ones."""
    config, profile = scenario["config"], scenario["profile"]
    part, alone = _policy_of(config), convert_policy(config.get("alone", {}))
    custom = {entry.name for entry in (*(alone.predicates or ()), *(alone.priorities or ()))}
    return Policy(
        predicates=(
            *(part.predicates or ()),
            *(alone.predicates or ()),
            *(
                PredicatePolicy(name=name)
                for name in profile["alonePredicates"]
                if name not in custom
            ),
        ),
        priorities=(
            *(part.priorities or ()),
            *(alone.priorities or ()),
            *(
                PriorityPolicy(name=name, weight=1)
                for name in profile["alonePriorities"]
                if name not in custom
            ),
        ),
        hard_pod_affinity_symmetric_weight=part.hard_pod_affinity_symmetric_weight,
    )


def _algorithm_of(config: JsonObject, policy: Policy) -> Algorithm:
    return build_algorithm(policy, environment=config.get("env", {}))


# --- the cluster before the first pod ---


def _compare_world(comparer: Comparer, scenario: JsonObject, world: LegacyWorld) -> None:
    profile, algorithm = scenario["profile"], world.algorithm
    names = [predicate.name for predicate in algorithm.predicates]
    comparer.equal(CLUSTER, "predicates", sorted(profile["predicates"]), names)
    weights = {priority.name: weight for priority, weight in algorithm.priorities}
    comparer.equal(CLUSTER, "priorities", profile["priorities"], weights)
    comparer.equal(
        CLUSTER,
        "hardPodAffinitySymmetricWeight",
        profile["hardPodAffinitySymmetricWeight"],
        algorithm.hard_pod_affinity_weight,
    )
    for name, recorded in scenario["nodeInfo"].items():
        comparer.equal(CLUSTER, f"nodeInfo {name}", recorded, _node_info(world.cache.node(name)))


def _node_info(info: NodeInfo) -> JsonObject:
    return {
        "allocatable": _resources(info.allocatable) | {"pods": info.allocatable.allowed_pods},
        "pods": [pod.key for pod in info.pods],
        "requested": _resources(info.requested)
        | {"nonZeroMilliCPU": info.non_zero_cpu, "nonZeroMemory": info.non_zero_memory},
        "usedPorts": sorted(f"{port.protocol}/{port.ip}/{port.port}" for port in info.used_ports),
    }


def _resources(resources: Resources) -> JsonObject:
    amounts: JsonObject = {
        "milliCPU": resources.milli_cpu,
        "memory": resources.memory,
        "ephemeralStorage": resources.ephemeral_storage,
        "nvidiaGPU": resources.scalar.get(NVIDIA_GPU, 0),
    }
    scalar = {
        name: amount
        for name, amount in resources.scalar.items()
        if is_counted(name) and name != NVIDIA_GPU
    }
    return amounts | {"scalar": scalar} if scalar else amounts


# --- an attempt ---


def _compare_attempt(
    comparer: Comparer, expected: JsonObject, world: LegacyWorld, decision: DecisionV19
) -> None:
    attempt = Attempt(decision.pod, world.cluster)
    _compare_requests(comparer, expected["requests"], attempt)
    _compare_predicates(comparer, expected["predicates"], world, attempt)
    comparer.mapping(
        VERDICTS,
        "all",
        world.snapshot.names,
        {name: _unordered(found) for name, found in expected["failed"].items()},
        lambda name: _failed(decision, world.snapshot.row_of(name)),
    )
    if "scores" in expected:
        _compare_scores(comparer, expected["scores"], world, attempt)
    _compare_choice(comparer, expected, decision)


def _compare_requests(comparer: Comparer, recorded: JsonObject, attempt: Attempt) -> None:
    accounted = attempt.pod.accounted
    got = _resources(attempt.request) | {
        "nonZeroMilliCPU": accounted.non_zero_cpu,
        "nonZeroMemory": accounted.non_zero_memory,
    }
    comparer.equal(CLUSTER, "requests", recorded, got)


def _compare_predicates(
    comparer: Comparer, recorded: JsonObject, world: LegacyWorld, attempt: Attempt
) -> None:
    snapshot = world.snapshot
    ours = {predicate.name: predicate for predicate in world.recorded.predicates}
    comparer.equal(VERDICTS, "names", sorted(recorded), sorted(ours))
    for name, failed in recorded.items():
        if name not in ours or not comparer.includes(VERDICTS, name):
            continue
        verdicts = ours[name].check(attempt, nodes_of(snapshot))
        got = {node: _verdict(verdicts, row) for row, node in enumerate(snapshot.names)}
        comparer.mapping(
            VERDICTS,
            name,
            snapshot.names,
            {node: _comparable(found) for node, found in failed.items()},
            got.get,
        )


def _verdict(verdicts: Verdicts, row: int) -> Any:
    code = FITS if verdicts.codes is None else int(verdicts.codes[row])
    if code == FITS:
        return None
    if code < FITS:
        return {"error": _without_term(verdicts.errors[-1 - code])}
    return list(reasons_of(code))


def _failed(decision: DecisionV19, row: int | None) -> Any:
    assert row is not None
    if errors := decision.errors(row):
        return {"error": _without_term(errors[0])}
    reasons = decision.reasons(row)
    return sorted(reasons) if reasons else None


def _compare_scores(
    comparer: Comparer, recorded: JsonObject, world: LegacyWorld, attempt: Attempt
) -> None:
    """Scores of the nodes that are feasible in the recording, even if they are not for us."""
    rows = [world.snapshot.row_of(name) for name in recorded["nodes"]]
    nodes = nodes_of(world.snapshot, np.array(rows, np.intp))
    ours = {entry.priority.name: entry for entry in world.recorded.priorities}
    comparer.equal(SCORES, "names", sorted(recorded["priorities"]), sorted(ours))
    for name, scores in recorded["priorities"].items():
        if name in ours and comparer.includes(SCORES, name):
            comparer.equal(SCORES, name, scores, _scores_by(ours[name], attempt, nodes))
    try:
        got: JsonObject = {"total": prioritize(world.algorithm.priorities, attempt, nodes).tolist()}
    except ScoringError as error:
        got = {"error": str(error)}
    comparer.equal(
        SCORES, "total", {key: recorded[key] for key in ("total", "error") if key in recorded}, got
    )


def _scores_by(entry: WeightedPriority, attempt: Attempt, nodes: Any) -> JsonObject:
    try:
        mapped, score = score_by(entry.priority, attempt, nodes)
    except ScoringError as error:
        return {"error": str(error.__cause__)}
    if mapped is None:
        return {"score": score.tolist()}
    return {"map": mapped.tolist(), "score": score.tolist()}


def _compare_choice(comparer: Comparer, expected: JsonObject, decision: DecisionV19) -> None:
    result = expected.get("result")
    if result is not None:
        comparer.equal(CHOICES, "node", result["node"], decision.node_name)
        comparer.equal(CHOICES, "feasibleNodes", result["feasibleNodes"], len(decision.feasible))
        comparer.equal(CHOICES, "topNodes", result["topNodes"], decision.top_nodes)
        return
    comparer.equal(CHOICES, "node", "", decision.node_name)
    comparer.equal(MESSAGES, "isFitError", "fitError" in expected, decision.is_fit_error)
    text = expected["fitError"] if "fitError" in expected else expected["error"]
    comparer.equal(MESSAGES, "text", _without_term(text), _without_term(decision.error))


def _comparable(found: Any) -> Any:
    return {"error": _without_term(found["error"])} if is_map(found) else found


def _unordered(found: Any) -> Any:
    return _comparable(found) if is_map(found) else sorted(found)


def _without_term(text: str) -> str:
    return _PRINTED_TERM.sub("because of …, err:", text)
