"""Updates are split into one event per kind of change (spec 02 §6.2, §6.3; 03 §11.9)."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kubestow.api.meta import Condition
from kubestow.api.node import Node, Taint
from kubestow.api.pod import (
    ContainerExtendedResourceRequest,
    ContainerStatus,
    Pod,
    PodExtendedResourceClaimStatus,
    PodResourceClaimStatus,
    ResourceRequirements,
)
from kubestow.framework.classify import POD_EVENTS, classify_node_update
from kubestow.testing.builders import Toleration, make_node, make_pod, make_resources

LABEL = "UpdatePodLabel"
SCALE_DOWN = "UpdatePodScaleDown"
TOLERATION = "UpdatePodToleration"
GATES_GONE = "UpdatePodSchedulingGatesEliminated"
CLAIM = "UpdatePodGeneratedResourceClaim"
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
UNSCHEDULABLE = "node.kubernetes.io/unschedulable:NoSchedule"


def pod(*, status: dict[str, Any] | None = None, **options: Any) -> Pod:
    made = make_pod(uid="u", **options)
    return msgspec.structs.replace(
        made, status=msgspec.structs.replace(made.status, **(status or {}))
    )


def pod_events(old: Pod, new: Pod) -> list[str]:
    """What happened, without the resource, which every event of an update shares."""
    resource = "AssignedPod" if new.spec.node_name else "UnschedulablePod"
    labels = [event.label for event in POD_EVENTS.of_update(old, new)]
    assert all(label.startswith(resource) for label in labels)
    return [label.removeprefix(resource) for label in labels]


def claims(*pairs: tuple[str, str | None]) -> dict[str, Any]:
    return {
        "resource_claim_statuses": tuple(
            PodResourceClaimStatus(name=name, resource_claim_name=claim) for name, claim in pairs
        )
    }


def extended(claim: str, *resources: str) -> dict[str, Any]:
    return {
        "extended_resource_claim_status": PodExtendedResourceClaimStatus(
            resource_claim_name=claim,
            request_mappings=tuple(
                ContainerExtendedResourceRequest(resource_name=name) for name in resources
            ),
        )
    }


def running(cpu: str) -> dict[str, Any]:
    """The container still runs with that much cpu."""
    requests = ResourceRequirements(requests=make_resources({"cpu": cpu}))
    return {"container_statuses": (ContainerStatus(name="c", resources=requests),)}


@pytest.mark.parametrize(
    ("old", "new", "events"),
    [
        pytest.param(
            {"labels": {"a": "1"}},
            {"labels": {"a": "2"}, "tolerations": [Toleration(key="x")]},
            [LABEL, TOLERATION],
            id="Q6.2-1",
        ),
        pytest.param({"cpu": "500m"}, {"cpu": "400m"}, [SCALE_DOWN], id="Q6.2-2"),
        pytest.param({"cpu": "500m"}, {"cpu": "600m"}, ["Update"], id="Q6.2-3"),
        pytest.param({"requests": {"example.com/gpu": 1}}, {}, [SCALE_DOWN], id="Q6.2-4"),
        pytest.param(
            {},
            {"conditions": [Condition(type="PodScheduled", status="False")]},
            ["Update"],
            id="Q6.2-5",
        ),
        pytest.param(
            {"tolerations": [Toleration(key="x")]},
            {"tolerations": [Toleration(key="y")]},
            ["Update"],
            id="Q6.2-6",
        ),
        pytest.param({}, {}, ["Update"], id="nothing-changed"),
        pytest.param({"gates": ["a", "b"]}, {"gates": ["a"]}, ["Update"], id="C11.9-9-one-gate"),
        pytest.param({"gates": ["a"]}, {}, [GATES_GONE], id="C11.9-9-last-gate"),
        pytest.param({}, {"nominated_node": "n1"}, ["Update"], id="nomination"),
        pytest.param({}, {"node_selector": {"a": "b"}}, ["Update"], id="node-selector"),
        pytest.param({"memory": "1Gi"}, {"memory": "1024Mi"}, ["Update"], id="equal-quantity"),
        pytest.param(
            {"pod_requests": {"cpu": "2"}},
            {"pod_requests": {"cpu": "1"}},
            [SCALE_DOWN],
            id="pod-level",
        ),
        pytest.param(
            {"cpu": "500m", "status": running("500m")},
            {"cpu": "250m", "status": running("500m")},
            ["Update"],
            id="C11.9-9-resize-not-done-yet",
        ),
        pytest.param(
            {"cpu": "250m", "status": running("500m")},
            {"cpu": "250m", "status": running("250m")},
            [SCALE_DOWN],
            id="resize-done",
        ),
        pytest.param({}, {"status": claims(("r", "c"))}, [CLAIM], id="claim-appears"),
        pytest.param(
            {"status": claims(("r", None))},
            {"status": claims(("r", "c"))},
            [CLAIM],
            id="claim-named",
        ),
        pytest.param(
            {"status": claims(("r", "c"), ("s", "d"))},
            {"status": claims(("s", "d"), ("r", "c"))},
            [CLAIM],
            id="claims-in-another-order",
        ),
        pytest.param(
            {"status": claims(("r", "c"))},
            {"status": claims(("r", "c"))},
            ["Update"],
            id="same-claim",
        ),
        pytest.param({}, {"status": extended("c")}, [CLAIM], id="extended-claim-appears"),
        pytest.param(
            {"status": extended("c", "x")},
            {"status": extended("c", "y")},
            [CLAIM],
            id="extended-mappings-differ",
        ),
        pytest.param(
            {"labels": {"a": "1"}, "cpu": 2, "gates": ["g"]},
            {"cpu": 1, "tolerations": [Toleration(key="x")], "status": claims(("r", "c"))},
            [LABEL, SCALE_DOWN, GATES_GONE, TOLERATION, CLAIM],
            id="all-in-order",
        ),
    ],
)
@pytest.mark.parametrize("node", ["", "n1"], ids=["unscheduled", "assigned"])
def test_a_pod_update_has_one_event_per_kind_of_change(
    old: dict[str, Any], new: dict[str, Any], events: list[str], node: str
) -> None:
    assert pod_events(pod(**old, node=node), pod(**new, node=node)) == events


def test_the_new_pod_decides_whether_it_is_assigned() -> None:
    (event,) = POD_EVENTS.of_update(pod(), pod(node="n1"))
    assert event.label == "AssignedPodUpdate"


def conditions(*pairs: tuple[str, str], heartbeat: datetime | None = None) -> list[Condition]:
    return [
        Condition(type=kind, status=status, last_probe_time=heartbeat, reason=str(heartbeat))
        for kind, status in pairs
    ]


def node_events(old: Node, new: Node, **gates: bool) -> list[str]:
    events = classify_node_update(old, new, **gates)
    return [event.label.removeprefix("NodeUpdateNode") for event in events]


@pytest.mark.parametrize(
    ("old", "new", "events"),
    [
        pytest.param(
            {"unschedulable": True, "taints": [UNSCHEDULABLE]}, {}, ["Taint", "Taint"], id="Q6.3-1"
        ),
        pytest.param(
            {"conditions": conditions(("Ready", "True"))},
            {"conditions": conditions(("Ready", "True"), heartbeat=NOON)},
            [],
            id="Q6.3-2",
        ),
        pytest.param(
            {}, {"unschedulable": True, "taints": [UNSCHEDULABLE]}, ["Taint"], id="Q6.3-3"
        ),
        pytest.param(
            {"cpu": 4}, {"cpu": 8, "labels": {"a": "b"}}, ["Allocatable", "Label"], id="Q6.3-4"
        ),
        pytest.param(
            {"conditions": conditions(("Ready", "True"))},
            {"conditions": conditions(("Ready", "Unknown"))},
            ["Condition"],
            id="Q6.3-5",
        ),
        pytest.param({"unschedulable": True}, {}, ["Taint"], id="uncordoned-only"),
        pytest.param({}, {"unschedulable": True}, [], id="cordoned-only"),
        pytest.param({"memory": "1Gi"}, {"memory": "1024Mi"}, [], id="C11.9-8-equal-quantity"),
        pytest.param({}, {"images": {"nginx": 5}}, [], id="C11.9-8-images"),
        pytest.param(
            {"taints": ["a:NoSchedule", "b:NoSchedule"]},
            {"taints": ["b:NoSchedule", "a:NoSchedule"]},
            ["Taint"],
            id="taints-in-another-order",
        ),
        pytest.param(
            {"taints": [Taint(key="a", effect="NoExecute")]},
            {"taints": [Taint(key="a", effect="NoExecute", time_added=NOON)]},
            ["Taint"],
            id="taint-added-at-another-time",
        ),
        pytest.param(
            {"conditions": conditions(("Ready", "False"), ("Ready", "True"))},
            {"conditions": conditions(("Ready", "True"))},
            [],
            id="last-condition-of-a-type-counts",
        ),
        pytest.param({}, {"annotations": {"a": "b"}}, ["Annotation"], id="annotation"),
        pytest.param({}, {"declared_features": ["F"]}, ["DeclaredFeature"], id="feature"),
        pytest.param(
            {"unschedulable": True, "declared_features": ["F", "G"]},
            {
                "cpu": 1,
                "labels": {"a": "b"},
                "taints": ["a:NoSchedule"],
                "conditions": conditions(("Ready", "True")),
                "annotations": {"a": "b"},
                "declared_features": ["G", "F"],
            },
            [
                "Taint",
                "Allocatable",
                "Label",
                "Taint",
                "Condition",
                "Annotation",
                "DeclaredFeature",
            ],
            id="all-in-order",
        ),
    ],
)
def test_a_node_update_has_one_event_per_kind_of_change(
    old: dict[str, Any], new: dict[str, Any], events: list[str]
) -> None:
    assert node_events(make_node(**old), make_node(**new)) == events


def test_declared_features_count_only_with_their_gate() -> None:
    old, new = make_node(), make_node(declared_features=["F"])
    assert node_events(old, new, declared_features=False) == []
