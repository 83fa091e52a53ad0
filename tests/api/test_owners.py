"""Controllers, services and the default selector (spec 01 §14)."""

import pytest

from kubestow.api.labels import EVERYTHING, Requirement, Selector, equality
from kubestow.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta, OwnerReference
from kubestow.api.owners import controller_of, default_selector, services_of
from kubestow.api.pod import Pod
from kubestow.api.workload import (
    ReplicaSet,
    ReplicaSetSpec,
    ReplicationController,
    ReplicationControllerSpec,
    Service,
    ServiceSpec,
    StatefulSet,
)


def service(name: str, selector: dict[str, str] | None) -> Service:
    return Service(metadata=ObjectMeta(name=name), spec=ServiceSpec(selector=selector))


SERVICES = {
    "ns": [service("s1", {"app": "web"}), service("s2", {"tier": "fe"}), service("s3", None)],
    "ns2": [service("s4", {})],
}
REPLICA_SETS = {
    ("ns", "rs1"): ReplicaSet(
        spec=ReplicaSetSpec(selector=LabelSelector(match_labels={"app": "web", "h": "abc"}))
    ),
    ("ns", "rs-absent"): ReplicaSet(),
    ("ns", "rs-empty"): ReplicaSet(spec=ReplicaSetSpec(selector=LabelSelector())),
    ("ns", "rs-bad"): ReplicaSet(
        spec=ReplicaSetSpec(selector=LabelSelector(match_labels={"-": "x"}))
    ),
}
STATEFUL_SETS = {
    ("ns", "ss1"): StatefulSet(
        spec=ReplicaSetSpec(
            selector=LabelSelector(
                match_expressions=(LabelSelectorRequirement(key="db", operator="Exists"),)
            )
        )
    )
}
CONTROLLERS = {
    ("ns", "rc1"): ReplicationController(spec=ReplicationControllerSpec(selector={"app": "other"})),
}


def owner(
    api_version: str, kind: str, name: str, *, controller: bool | None = True
) -> OwnerReference:
    return OwnerReference(api_version=api_version, kind=kind, name=name, controller=controller)


def make_pod(labels: dict[str, str], *owners: OwnerReference, namespace: str = "ns") -> Pod:
    return Pod(metadata=ObjectMeta(namespace=namespace, labels=labels, owner_references=owners))


def selector_of(pod: Pod) -> Selector:
    return default_selector(
        pod,
        services=lambda namespace: SERVICES.get(namespace, ()),
        replication_controller=lambda namespace, name: CONTROLLERS.get((namespace, name)),
        replica_set=lambda namespace, name: REPLICA_SETS.get((namespace, name)),
        stateful_set=lambda namespace, name: STATEFUL_SETS.get((namespace, name)),
    )


WEB = equality("app", "web")
WEB_ABC = {"app": "web", "h": "abc"}


@pytest.mark.parametrize(
    ("pod", "requirements"),
    [
        pytest.param(make_pod({"app": "web"}), [WEB], id="D1"),
        pytest.param(
            make_pod({"app": "web", "tier": "fe"}), [WEB, equality("tier", "fe")], id="D2"
        ),
        pytest.param(
            make_pod(WEB_ABC, owner("apps/v1", "ReplicaSet", "rs1")),
            [WEB, WEB, equality("h", "abc")],
            id="D4",
        ),
        pytest.param(
            make_pod(WEB_ABC, owner("apps/v1", "ReplicaSet", "rs1", controller=None)),
            [WEB],
            id="D5-not-controller",
        ),
        pytest.param(
            make_pod(WEB_ABC, owner("apps/v1beta2", "ReplicaSet", "rs1")), [WEB], id="D5-version"
        ),
        pytest.param(
            make_pod(WEB_ABC, owner("apps/v1", "ReplicaSet", "gone")), [WEB], id="D5-missing"
        ),
        pytest.param(
            make_pod({"app": "web"}, owner("v1", "ReplicationController", "rc1")),
            [equality("app", "other")],
            id="D6",
        ),
        pytest.param(
            make_pod({"app": "web"}, owner("v1", "ReplicationController", "gone")),
            [WEB],
            id="missing-replication-controller",
        ),
        pytest.param(
            make_pod({"k": "v"}, owner("apps/v1", "StatefulSet", "ss1")),
            [Requirement("db", "Exists")],
            id="D7",
        ),
        pytest.param(
            make_pod({"app": "web"}, owner("apps/v1", "ReplicaSet", "rs-absent")),
            [WEB],
            id="owner-without-selector",
        ),
        pytest.param(
            make_pod({"app": "web"}, owner("apps/v1", "ReplicaSet", "rs-empty")),
            [WEB],
            id="owner-with-empty-selector",
        ),
        pytest.param(
            make_pod({"app": "web"}, owner("apps/v1", "ReplicaSet", "rs-bad")),
            [WEB],
            id="owner-with-illegal-selector",
        ),
    ],
)
def test_default_selector_joins_services_and_controller(
    pod: Pod, requirements: list[Requirement]
) -> None:
    assert selector_of(pod) == Selector(requirements)


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod({}), id="D3-no-labels"),
        pytest.param(make_pod({"q": "r"}, namespace="ns2"), id="D3-empty-service-selector"),
        pytest.param(make_pod({"k": "v"}, owner("batch/v1", "Job", "j")), id="D8-job"),
    ],
)
def test_nothing_in_common_gives_the_empty_selector(pod: Pod) -> None:
    assert selector_of(pod) == EVERYTHING


def test_controller_is_the_first_owner_marked_as_one() -> None:
    first = owner("v1", "Node", "n", controller=False)
    second = owner("apps/v1", "ReplicaSet", "rs1")
    third = owner("apps/v1", "ReplicaSet", "rs2")
    assert controller_of(make_pod({}, first, second, third)) == second
    assert controller_of(make_pod({}, first)) is None


def test_service_with_empty_selector_serves_all_and_without_none() -> None:
    services = [service("all", {}), service("none", None), service("web", {"app": "web"})]
    assert services_of(make_pod({"app": "db"}), services) == [services[0]]
    assert services_of(make_pod({"app": "web"}), services) == [services[0], services[2]]
