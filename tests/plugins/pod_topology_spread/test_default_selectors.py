"""Services are found by the labels of a pod; the result is that of looking at all of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.decode import convert
from kubestow.api.meta import ObjectMeta, OwnerReference
from kubestow.api.owners import default_selector
from kubestow.api.pod import Pod
from kubestow.api.workload import ReplicaSet, Service, ServiceSpec
from kubestow.cache.objects import ClusterObjects
from kubestow.plugins.pod_topology_spread import default_selectors
from kubestow.plugins.pod_topology_spread.default_selectors import DefaultSelectors
from kubestow.testing import make_pod

LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3)
SELECTORS = st.one_of(st.none(), LABELS)


def service(name: str, selector: dict[str, str] | None) -> Service:
    return Service(
        metadata=ObjectMeta(name=name, namespace="default"), spec=ServiceSpec(selector=selector)
    )


def labelled(labels: dict[str, str]) -> Pod:
    return make_pod(labels=labels)


@given(
    services=st.lists(SELECTORS, max_size=6),
    later=st.lists(SELECTORS, max_size=2),
    pods=st.lists(LABELS, min_size=1, max_size=5),
)
def test_selectors_equal_those_found_by_looking_at_every_service(
    services: list[dict[str, str] | None],
    later: list[dict[str, str] | None],
    pods: list[dict[str, str]],
) -> None:
    objects = ClusterObjects()
    selectors = DefaultSelectors(objects)
    objects.put(*(service(f"s{number}", each) for number, each in enumerate(services)))
    for _ in range(2):
        for labels in pods:
            pod = labelled(labels)
            expected = default_selector(
                pod,
                services=objects.services.list_namespace,
                replication_controller=objects.replication_controllers.get,
                replica_set=objects.replica_sets.get,
                stateful_set=objects.stateful_sets.get,
            )
            assert selectors.of(pod) == expected
        objects.put(*(service(f"s{number}", each) for number, each in enumerate(later)))


def test_services_are_looked_up_again_when_they_change() -> None:
    objects = ClusterObjects()
    selectors = DefaultSelectors(objects)
    assert selectors.of(labelled({"a": "1"})).is_empty
    objects.put(service("s", {"a": "1"}))
    assert not selectors.of(labelled({"a": "1"})).is_empty
    objects.services.remove("default", "s")
    assert selectors.of(labelled({"a": "1"})).is_empty


def test_selectors_of_one_namespace_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default_selectors, "SELECTORS_MAX", 3)
    objects = ClusterObjects()
    selectors = DefaultSelectors(objects)
    objects.put(*(service(f"s{number}", {"a": str(number)}) for number in range(10)))
    for number in range(10):
        assert not selectors.of(labelled({"a": str(number)})).is_empty
        assert len(selectors._namespaces["default"]._selectors) <= 3


def test_namespaces_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default_selectors, "NAMESPACES_MAX", 3)
    selectors = DefaultSelectors(ClusterObjects())
    for number in range(10):
        selectors.of(make_pod(namespace=f"n{number}"))
        assert len(selectors._namespaces) <= 3


def test_an_owner_of_another_api_version_changes_nothing_for_the_pods_of_the_owner() -> None:
    objects = ClusterObjects()
    document = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    }
    objects.put(convert(ReplicaSet, document))
    selectors = DefaultSelectors(objects)

    def owned(api_version: str) -> Pod:
        owner = OwnerReference(
            api_version=api_version, kind="ReplicaSet", name="web", controller=True
        )
        return make_pod(owner=owner)

    assert selectors.of(owned("v1")).is_empty
    assert not selectors.of(owned("apps/v1")).is_empty
