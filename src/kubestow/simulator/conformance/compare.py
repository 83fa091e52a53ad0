"""Compares one decision with the recorded one, part by part."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from kubestow.api.meta import JsonObject, object_ref
from kubestow.api.pod_info import PodInfo
from kubestow.api.resources import Resources
from kubestow.engine.decision import Decision
from kubestow.engine.select_host import best_positions
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import PASSED, decode_status
from kubestow.framework.plugin import FilterPlugin, PreFilterPlugin, Restriction
from kubestow.framework.profile import Profile, plugin_name
from kubestow.framework.runner import (
    FilterError,
    ScoreError,
    Scores,
    run_filters,
    run_filters_with_nominated,
    run_pre_filter,
    run_scores,
)
from kubestow.framework.status import Status
from kubestow.index.nodes import SimulatedNode, nodes_of
from kubestow.plugins.default_preemption import DefaultPreemption
from kubestow.plugins.default_preemption.executor import Preemptor
from kubestow.plugins.volume_binding import VolumeBinding
from kubestow.simulator.conformance.report import Comparer
from kubestow.simulator.conformance.world import World
from kubestow.simulator.recorded_parts import (
    CHOICES,
    CLUSTER,
    MESSAGES,
    POST_FILTER,
    PRE_FILTER,
    RESERVE,
    SCORES,
    VERDICTS,
)

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"


# --- the cluster before the first pod ---


def compare_world(comparer: Comparer, scenario: JsonObject, world: World) -> None:
    comparer.equal(CLUSTER, "node order", scenario["nodeOrder"], world.snapshot.names)
    profiles = {"default-scheduler": scenario["profile"], **scenario.get("profiles", {})}
    for name, recorded in profiles.items():
        _compare_profile(comparer, recorded, world.profiles[name])
    for name, recorded in scenario.get("nodeInfo", {}).items():
        info = world.snapshot.get(name)
        got = {
            "requested": _requested(info.requested, info.non_zero_cpu, info.non_zero_memory),
            "allocatable": _allocatable(info.allocatable),
            "pods": [pod.key for pod in info.pods],
        }
        for field, value in got.items():
            expected = recorded.get(field, [] if field == "pods" else {})
            comparer.equal(CLUSTER, f"node {name} {field}", expected or value.__class__(), value)


def _compare_profile(comparer: Comparer, recorded: JsonObject, profile: Profile) -> None:
    lists: dict[str, Sequence[object]] = {
        "preFilter": profile.pre_filter,
        "filter": profile.filter,
        "postFilter": profile.post_filter,
        "preScore": profile.pre_score,
        "score": profile.score,
    }
    for point, plugins in lists.items():
        names = [plugin_name(plugin) for plugin in plugins]
        comparer.equal(CLUSTER, f"profile {point}", recorded.get(point) or [], names)
    comparer.equal(CLUSTER, "profile weights", recorded.get("weights") or {}, profile.weights)


def _requested(requested: Resources, non_zero_cpu: int, non_zero_memory: int) -> JsonObject:
    result: JsonObject = {
        "milliCPU": requested.milli_cpu,
        "memory": requested.memory,
        "ephemeralStorage": requested.ephemeral_storage,
        "nonZeroMilliCPU": non_zero_cpu,
        "nonZeroMemory": non_zero_memory,
    }
    if requested.scalar:
        result["scalar"] = dict(requested.scalar)
    return result


def _allocatable(allocatable: Resources) -> JsonObject:
    result: JsonObject = {
        "milliCPU": allocatable.milli_cpu,
        "memory": allocatable.memory,
        "ephemeralStorage": allocatable.ephemeral_storage,
        "pods": allocatable.allowed_pods,
    }
    if allocatable.scalar:
        result["scalar"] = dict(allocatable.scalar)
    return result


# --- one attempt ---


def compare_attempt(
    comparer: Comparer, expected: JsonObject, world: World, decision: Decision
) -> None:
    pod, profile = decision.pod, world.profile_of(decision.pod)
    accounted = pod.accounted
    comparer.equal(
        CLUSTER,
        "requests",
        expected["requests"],
        _requested(accounted.requested, accounted.non_zero_cpu, accounted.non_zero_memory),
    )
    compare_nominations(comparer, expected, world)
    _compare_pre_filter(comparer, expected["preFilter"], decision)
    _compare_node_verdicts(comparer, expected, world, decision)
    for name, recorded in expected["plugins"].items():
        _compare_plugin_alone(comparer, name, recorded, world, pod)
    if "scores" in expected:
        _compare_scores(comparer, expected["scores"], world, profile, pod)
    compare_choice(comparer, expected, decision)
    compare_failure(comparer, expected, decision)
    if "postFilter" in expected:
        compare_preemption(comparer, expected["postFilter"], world, decision)


def compare_nominations(comparer: Comparer, expected: JsonObject, world: World) -> None:
    got = {
        name: [pod.key for pod in world.nominator.nominated_pods_for_node(name)]
        for name in world.nominator.nominated_nodes()
        if world.snapshot.row_of(name) is not None
    }
    comparer.equal(CLUSTER, "nominated pods", expected.get("nominatedPods", {}), got)


def _compare_pre_filter(comparer: Comparer, recorded: JsonObject, decision: Decision) -> None:
    outcome = decision.pre_filter
    got = as_json(outcome.status)
    if outcome.node_names is not None:
        got["nodeNames"] = sorted(outcome.node_names)
        got["restrictedBy"] = sorted(outcome.restricting)
    expected = {key: value for key, value in recorded.items() if key != "skipped"}
    for key in ("nodeNames", "restrictedBy"):
        if key in expected:
            expected[key] = sorted(expected[key])
    comparer.equal(PRE_FILTER, "outcome", expected, got)
    if outcome.status is None or outcome.status.is_rejected:
        comparer.equal(
            PRE_FILTER, "skipped", recorded.get("skipped", []), sorted(decision.state.skip_filter)
        )


def _compare_node_verdicts(
    comparer: Comparer, expected: JsonObject, world: World, decision: Decision
) -> None:
    """Every node's verdict by all filters together, with nominated pods."""
    status = decision.pre_filter.status
    if status is not None:
        return
    recorded = expected.get("nodes", {})
    verdicts = all_verdicts(world, decision)
    comparer.mapping(
        VERDICTS,
        "all",
        world.snapshot.names,
        recorded,
        lambda name: as_json(verdicts[name]) if verdicts[name] is not None else None,
    )


def all_verdicts(world: World, decision: Decision) -> dict[str, Status | None]:
    """The verdict of the filters for each node on a new cycle state, errors included."""
    snapshot, pod = world.snapshot, decision.pod
    profile, state = world.profile_of(pod), CycleState()
    outcome = run_pre_filter(profile, state, pod, nodes_of(snapshot))
    result: dict[str, Status | None] = {}
    rows = range(len(snapshot))
    if outcome.node_names is not None:
        absent = decision.diagnosis.absent
        if decision.via_nominated_node:
            # The search that would have set the status of absent nodes did not run.
            restricting = " ".join(sorted(outcome.restricting))
            absent = Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{restricting}]")
        result = dict.fromkeys(snapshot.names, absent)
        rows = [row for row in rows if snapshot.names[row] in outcome.node_names]
    if not rows:
        return result
    nodes = nodes_of(snapshot, np.array(rows, np.intp))
    try:
        verdicts = run_filters(profile, state, pod, nodes)
    except FilterError as error:
        return {**result, **dict.fromkeys(nodes.names, error.status)}
    for position, row in enumerate(rows):
        name = snapshot.names[row]
        nominated = world.nominator.nominated_pods_for_node(name)
        if nominated:
            node = SimulatedNode(snapshot, row)
            result[name] = run_filters_with_nominated(profile, state, pod, node, nominated)
            continue
        index = int(verdicts.failed_by[position])
        result[name] = (
            None
            if index == PASSED
            else decode_status(profile.filter[index], state, int(verdicts.codes[position]))
        )
    return result


def _compare_plugin_alone(
    comparer: Comparer, name: str, recorded: JsonObject, world: World, pod: PodInfo
) -> None:
    """One filter plugin by itself: its PreFilter, then its Filter on every node."""
    plugin = world.profile_of(pod).plugins.get(name)
    if plugin is None or not comparer.includes(VERDICTS, name):
        return
    state = CycleState()
    if isinstance(plugin, PreFilterPlugin):
        got = _run_pre_filter_alone(plugin, state, world, pod)
        expected = dict(recorded.get("preFilter", {}))
        if "nodeNames" in expected:
            expected["nodeNames"] = sorted(expected["nodeNames"])
        comparer.equal(PRE_FILTER, name, expected, got)
        if got["code"] != "Success":
            return
    if isinstance(plugin, FilterPlugin):
        verdicts = _filter_alone(plugin, state, world, pod)
        comparer.mapping(
            VERDICTS, name, world.snapshot.names, recorded.get("filter", {}), verdicts.get
        )


def _run_pre_filter_alone(
    plugin: PreFilterPlugin, state: CycleState, world: World, pod: PodInfo
) -> JsonObject:
    try:
        answer = plugin.pre_filter(state, pod, nodes_of(world.snapshot))
    except Exception as error:
        return as_json(Status.from_error(error))
    if isinstance(answer, Restriction):
        return {"code": "Success", "nodeNames": sorted(answer.node_names)}
    return as_json(answer)


def _filter_alone(
    plugin: FilterPlugin, state: CycleState, world: World, pod: PodInfo
) -> dict[str, JsonObject]:
    names = world.snapshot.names
    try:
        codes = plugin.filter(state, pod, nodes_of(world.snapshot))
    except Exception as error:
        return dict.fromkeys(names, as_json(Status.from_error(error)))
    if codes is None:
        return {}
    return {
        names[row]: as_json(plugin.filter_status(state, int(codes[row])))
        for row in np.flatnonzero(codes).tolist()
    }


def _compare_scores(
    comparer: Comparer, recorded: JsonObject, world: World, profile: Profile, pod: PodInfo
) -> None:
    """Scores of the nodes that are feasible in the recording, even if they are not for us."""
    rows = [world.snapshot.row_of(name) for name in recorded.get("nodes", ())]
    nodes = nodes_of(world.snapshot, np.array(rows, np.intp))
    state = CycleState()
    run_pre_filter(profile, state, pod, nodes_of(world.snapshot))
    with suppress(FilterError):
        run_filters(profile, state, pod, nodes)  # Some scores use state from Filter.
    try:
        scores = run_scores(profile, state, pod, nodes)
    except ScoreError as error:
        comparer.equal(SCORES, "error", recorded.get("error"), error.status.message)
        return
    comparer.equal(SCORES, "error", recorded.get("error"), None)
    comparer.equal(SCORES, "skipped", recorded.get("skipped") or [], sorted(state.skip_score))
    _compare_plugin_scores(comparer, recorded, scores)
    comparer.equal(SCORES, "total", recorded.get("total"), scores.total.tolist())


def _compare_plugin_scores(comparer: Comparer, recorded: JsonObject, scores: Scores) -> None:
    got = {
        part.plugin: {
            "raw": part.raw.tolist(),
            "normalized": part.normalized.tolist(),
            "weighted": (part.normalized * part.weight).tolist(),
        }
        for part in scores.by_plugin
    }
    for name, lists in recorded.get("plugins", {}).items():
        for kind, values in lists.items():
            comparer.equal(SCORES, f"{name} {kind}", values, got.get(name, {}).get(kind))


def compare_choice(comparer: Comparer, expected: JsonObject, decision: Decision) -> None:
    result = expected.get("result")
    if result is None:
        comparer.equal(CHOICES, "node", None, decision.node_name or None)
        return
    if result.get("orderFixed", True):
        comparer.equal(CHOICES, "node", result["node"], decision.node_name)
    else:
        # Upstream visits the restricted nodes in random order: any of the best is right.
        is_one_of_best = decision.node_name in result.get("topNodes", [result["node"]])
        comparer.equal(CHOICES, "node", True, is_one_of_best)
    comparer.equal(CHOICES, "evaluatedNodes", result["evaluatedNodes"], decision.evaluated_count)
    comparer.equal(CHOICES, "feasibleNodes", result["feasibleNodes"], len(decision.feasible))
    comparer.equal(
        CHOICES,
        "viaNominatedNode",
        result.get("viaNominatedNode", False),
        decision.via_nominated_node,
    )
    if "topNodes" in result and decision.scores is not None:
        best = best_positions(decision.scores.total)
        rows: list[int] = decision.feasible[best].tolist()
        names = sorted(decision.node_names[row] for row in rows)
        comparer.equal(CHOICES, "topNodes", sorted(result["topNodes"]), names)


def compare_failure(comparer: Comparer, expected: JsonObject, decision: Decision) -> None:
    """Texts and PostFilter of a pod that was not placed."""
    message = _with_our_node(expected.get("message"), expected.get("postFilter"), decision)
    comparer.equal(MESSAGES, "message", message, decision.message or None)
    if "error" in expected:
        got = decision.status.message if decision.status is not None else None
        comparer.equal(MESSAGES, "error", expected["error"], got)
    if "fitError" not in expected:
        return
    comparer.equal(MESSAGES, "fitError", expected["fitError"], decision.fit_error_text)
    comparer.equal(
        MESSAGES,
        "unschedulablePlugins",
        sorted(expected.get("unschedulablePlugins", [])),
        sorted(decision.diagnosis.unschedulable_plugins),
    )
    _compare_post_filter(comparer, expected["postFilter"], decision)


def compare_preemption(
    comparer: Comparer, recorded: JsonObject, world: World, decision: Decision
) -> None:
    """The candidates of preemption, their victims, and the status of the other nodes."""
    plugin = world.profile_of(decision.pod).plugins.get(DefaultPreemption.name)
    if not isinstance(plugin, DefaultPreemption) or not comparer.includes(POST_FILTER):
        return
    if "candidates" not in recorded and "dryRun" not in recorded:
        return
    dry_run = plugin.evaluate_all(decision.state, decision.pod, decision.diagnosis)
    names = world.snapshot.names
    found = dry_run.candidates_by_row()
    candidates = [found[position] for position in range(len(found))]
    got: list[JsonObject] = [
        {
            "node": names[candidate.row],
            "victims": [victim.key for victim in candidate.victims],
            "pdbViolations": candidate.violation_count,
        }
        for candidate in candidates
    ]
    expected = [{"pdbViolations": 0, **entry} for entry in recorded.get("candidates", ())]
    comparer.equal(POST_FILTER, "candidates", expected, got)
    positions: list[int] = found.best().tolist() if candidates else []
    best: list[str] = [got[position]["node"] for position in positions]
    comparer.equal(POST_FILTER, "bestNodes", sorted(recorded.get("bestNodes", ())), sorted(best))
    nominated = [one for one in got if one["node"] == recorded["nominatedNode"]]
    victims: list[str] = nominated[0]["victims"] if nominated else []
    comparer.equal(POST_FILTER, "victims", recorded.get("victims", []), victims)
    if nominated:
        chosen = candidates[got.index(nominated[0])]
        preemptor = Preemptor.of_pod(decision.pod, is_member=False)
        eviction = plugin.executor.plan(preemptor, nominated[0]["node"], tuple(chosen.victims))
        cleared = [object_ref(pod.metadata) for pod in eviction.nominated]
        comparer.equal(
            POST_FILTER, "clearedNominations", recorded.get("clearedNominations", []), cleared
        )
    statuses = {name: as_json(status) for name, status in dry_run.statuses().items()}
    comparer.equal(POST_FILTER, "dryRun", recorded.get("dryRun", {}), statuses)


def compare_reserve(
    comparer: Comparer,
    expected: JsonObject,
    world: World,
    decision: Decision,
    status: Status | None,
) -> None:
    """The status of Reserve on the recorded node, and all assumed volumes and claims after it."""
    if "reserve" not in expected:
        return
    comparer.equal(RESERVE, "status", expected["reserve"], as_json(status))
    plugin = world.profile_of(decision.pod).plugins.get(VolumeBinding.name)
    if not isinstance(plugin, VolumeBinding):
        return
    volumes = {
        volume.metadata.name: f"{volume.spec.claim_ref.namespace}/{volume.spec.claim_ref.name}"
        for volume in plugin.assumed_volumes()
        if volume.spec.claim_ref is not None
    }
    claims = {
        object_ref(claim.metadata): claim.metadata.annotations[SELECTED_NODE]
        for claim in plugin.assumed_claims()
        if SELECTED_NODE in claim.metadata.annotations
    }
    recorded = expected.get("reserved", {})
    comparer.equal(RESERVE, "volumes", recorded.get("pvs", {}), volumes)
    comparer.equal(RESERVE, "claims", recorded.get("pvcs", {}), claims)


def _compare_post_filter(comparer: Comparer, recorded: JsonObject, decision: Decision) -> None:
    status = decision.post_filter_status
    got = as_json(status)
    if status is not None and status.is_success:
        got.pop("plugin", None)
    expected = {key: recorded[key] for key in ("code", "plugin", "reasons") if key in recorded}
    if "reasons" in expected:
        expected["reasons"] = [
            _with_our_node(text, recorded, decision) for text in expected["reasons"]
        ]
    comparer.equal(POST_FILTER, "status", expected, got)
    nominated = decision.post_filter.nominated_node_name if decision.post_filter else None
    best = recorded.get("bestNodes", [])
    if len(best) > 1 and nominated in best:
        nominated = recorded["nominatedNode"]  # Upstream picks one of them at random.
    comparer.equal(POST_FILTER, "nominatedNode", recorded.get("nominatedNode"), nominated)


def _with_our_node(text: Any, recorded: JsonObject | None, decision: Decision) -> Any:
    """The text of a preemptor with the node that is chosen here, if it is one of the best, too:
    upstream picks one of them at random."""
    ours = decision.post_filter.nominated_node_name if decision.post_filter else ""
    if not text or not recorded or ours not in recorded.get("bestNodes", ()):
        return text
    counts = {entry["node"]: len(entry["victims"]) for entry in recorded["candidates"]}
    theirs: str = recorded["nominatedNode"]
    return text.replace(
        f"on node {theirs}, preempting {counts[theirs]} victims",
        f"on node {ours}, preempting {counts[ours]} victims",
    )


def as_json(status: Status | None) -> JsonObject:
    """A status in the recordings' form: empty parts are left out."""
    if status is None:
        return {"code": "Success"}
    result: JsonObject = {"code": status.code.label}
    if status.plugin:
        result["plugin"] = status.plugin
    if status.all_reasons:
        result["reasons"] = list(status.all_reasons)
    return result
