"""Groups of other APIs, read into the same rules."""

import logging
from typing import Any

import pytest

from kubestow.api.decode import class_of, convert
from kubestow.api.gang_dialects import (
    DIALECTS,
    NAMED_FIELDS_MAX,
    SCHEDULER_PLUGINS,
    V1BETA1,
    DialectReader,
    key_of_object,
)
from kubestow.api.group import GangOptions, Group, GroupKey
from kubestow.api.pod_group import PodGroup, PodGroupV1Beta1, SchedulerPluginsPodGroup
from kubestow.api.quantity import parse_quantity
from kubestow.testing import make_node, make_pod_group

OPTIONS = GangOptions(timeout_s=60.0, dialects=(SCHEDULER_PLUGINS, V1BETA1))


def read(api_version: str, reader: DialectReader | None = None, **spec: Any) -> Group | None:
    document = {
        "apiVersion": api_version,
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "ns", "uid": "u"},
        "spec": spec,
    }
    cls = class_of(document)
    assert cls is DIALECTS[api_version].cls
    pod_group = convert(cls, document)
    assert isinstance(pod_group, SchedulerPluginsPodGroup | PodGroupV1Beta1)
    return (reader or DialectReader(OPTIONS)).read(DIALECTS[api_version], pod_group)


def test_every_api_has_its_class() -> None:
    classes = [
        class_of({"apiVersion": version, "kind": "PodGroup"})
        for version in ("scheduling.k8s.io/v1alpha2", V1BETA1, SCHEDULER_PLUGINS)
    ]
    assert classes == [PodGroup, PodGroupV1Beta1, SchedulerPluginsPodGroup]


def test_scheduler_plugins() -> None:
    group = read(
        SCHEDULER_PLUGINS,
        minMember=3,
        scheduleTimeoutSeconds=7,
        minResources={"memory": "1Gi", "cpu": 2},
    )
    assert group == Group(
        GroupKey("ns", "g"),
        "u",
        min_count=3,
        timeout_s=7,
        min_resources=(("cpu", parse_quantity(2)), ("memory", parse_quantity("1Gi"))),
    )
    group = read(SCHEDULER_PLUGINS, minMember=1, scheduleTimeoutSeconds=None)
    assert group is not None
    assert group.timeout_s == 60.0


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"schedulingPolicy": {"basic": {}}}, {}, id="basic"),
        pytest.param({"schedulingPolicy": {"gang": {"minCount": 4}}}, {"min_count": 4}, id="gang"),
        pytest.param({"disruptionMode": {"single": {}}}, {}, id="single"),
        pytest.param({"disruptionMode": {"all": {}}}, {"is_evicted_whole": True}, id="all"),
        pytest.param({"priority": 5}, {"priority": 5}, id="priority"),
        pytest.param(
            {"schedulingConstraints": {"topology": [{"key": "rack"}]}},
            {"topology_key": "rack", "is_constrained": True},
            id="topology",
        ),
        pytest.param({"workloadRef": {"workloadName": "w", "templateName": "t"}}, {}, id="ref"),
    ],
)
def test_v1beta1(spec: dict[str, Any], expected: dict[str, Any]) -> None:
    known = Group(GroupKey("ns", "g"), "u", timeout_s=60.0)
    assert read(V1BETA1, **spec) == known._replace(**expected)


def test_fields_that_are_not_read_are_named(caplog: pytest.LogCaptureFixture) -> None:
    reader = DialectReader(OPTIONS)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            read(V1BETA1, reader, preemptionPolicy="Never", disruptionMode={"some": {}})
            read(V1BETA1, reader, schedulingConstraints={"topology": [{"key": "k", "level": 1}]})
    fields = [record.getMessage().split('"')[1] for record in caplog.records]
    assert fields == [
        "spec.preemptionPolicy",
        "spec.disruptionMode.some",
        "spec.schedulingConstraints.topology.level",
    ]


def test_only_so_many_fields_are_named(caplog: pytest.LogCaptureFixture) -> None:
    reader = DialectReader(OPTIONS)
    with caplog.at_level(logging.WARNING):
        read(SCHEDULER_PLUGINS, reader, minMember=1, **{f"x{i}": i for i in range(150)})
    assert len(caplog.records) == NAMED_FIELDS_MAX


def test_an_object_that_does_not_make_sense_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert read(SCHEDULER_PLUGINS, minMember="many") is None
    assert "the pod group ns/g is not used" in caplog.text
    assert "minMember" in caplog.text


def test_which_group_an_object_is_about() -> None:
    assert key_of_object(make_pod_group("g")) == GroupKey("default", "g")
    assert key_of_object(make_node("g")) is None
