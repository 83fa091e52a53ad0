from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.writes import pod_admission
from kubestow.apiserver.writes.admission import admit_new
from kubestow.apiserver.writes.pod_admission import PodAdmission
from kubestow.cluster.resources import PODS, PRIORITY_CLASSES
from kubestow.errors import ApiError
from kubestow.testing import ManualClock

CONTAINERS = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
SPECS: list[JsonObject] = [
    {"containers": CONTAINERS},
    {"containers": CONTAINERS, "priorityClassName": "high"},
    {"containers": CONTAINERS, "schedulingGates": [{"name": "later"}]},
    {"containers": [{"name": "main", "resources": {"limits": {"memory": "1Gi"}}}]},
    {"containers": CONTAINERS, "nodeSelector": {"a": "not a label!"}},
    {"containers": "none"},
    {
        "containers": CONTAINERS,
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
                "matchLabelKeys": ["hash"],
            }
        ],
    },
]
METADATA = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b", "Not valid", ""]), "namespace": st.just("default")},
    optional={
        "labels": st.sampled_from([{}, {"app": "web", "hash": "1"}, {"app": "web", "hash": "2"}]),
        "annotations": st.sampled_from([{"a": "1"}, {"a": "2"}, {"not valid!": ""}, {"a": 3}, []]),
        "finalizers": st.just(["x/y"]),
    },
)
PODS_GIVEN = st.fixed_dictionaries(
    {"metadata": METADATA, "spec": st.sampled_from(SPECS)},
    optional={"status": st.just({"phase": "Running"})},
)


def high(value: int) -> JsonObject:
    return {"metadata": {"name": "high"}, "value": value}


def answer(admit: Any) -> object:
    try:
        return admit()
    except ApiError as error:
        return str(error)


@given(st.lists(st.one_of(PODS_GIVEN, st.integers(1, 3)), max_size=12))
def test_pods_are_admitted_as_if_each_were_the_first(steps: list[Any]):
    cluster = MemoryCluster(ManualClock())
    cluster.create(PRIORITY_CLASSES, high(0))
    admission = PodAdmission()
    for step in steps:
        if isinstance(step, int):
            cluster.replace(PRIORITY_CLASSES, {**high(step)})
            continue
        document = {"apiVersion": "v1", "kind": "Pod", **step}
        kept = answer(lambda document=document: admission.admit(document, cluster))
        first = answer(lambda document=document: admit_new(PODS, document, cluster))
        assert kept == first
        if isinstance(kept, tuple) and isinstance(first, tuple):
            assert list(kept[0]) == list(first[0])  # in the same order, too


def test_pods_of_one_template_share_their_spec():
    cluster = MemoryCluster(ManualClock())
    first, second = (
        cluster.create(PODS, {"metadata": {"name": name}, "spec": SPECS[0]}) for name in "ab"
    )
    assert first.document["spec"] is second.document["spec"]
    assert first.uid != second.uid


def test_pods_of_one_template_share_labels_and_document_and_struct_share_annotations():
    cluster = MemoryCluster(ManualClock())
    first, second = (
        cluster.create(
            PODS,
            {"metadata": {"name": name, "labels": {"a": "b"}, "annotations": {"own": name}},
             "spec": SPECS[0]},
        )
        for name in "ab"
    )  # fmt: skip
    assert first.typed.metadata.labels is second.typed.metadata.labels
    assert second.typed.metadata.annotations is second.document["metadata"]["annotations"]


def test_the_pods_admitted_last_are_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pod_admission, "ADMITTED_MAX", 2)
    cluster = MemoryCluster(ManualClock())
    admission = PodAdmission()
    for number in range(4):
        spec = {"containers": CONTAINERS, "nodeSelector": {"n": str(number)}}
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
        assert admission.admit(document, cluster) == admit_new(PODS, document, cluster)
    assert len(admission._known) == 2
