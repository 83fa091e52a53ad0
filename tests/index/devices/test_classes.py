"""Which device class serves a resource (spec 05 §8.3)."""

from datetime import UTC, datetime

import pytest

from kubestow.api.device import DeviceClass, DeviceClassSpec
from kubestow.api.meta import ObjectMeta
from kubestow.cache.objects import ClusterObjects
from kubestow.index.devices.classes import DeviceClassMap

GPU = "example.com/gpu"


def make_class(name: str, resource: str | None = None, created: int | None = None) -> DeviceClass:
    timestamp = None if created is None else datetime.fromtimestamp(created, UTC)
    return DeviceClass(
        metadata=ObjectMeta(name=name, creation_timestamp=timestamp),
        spec=DeviceClassSpec(extended_resource_name=resource),
    )


@pytest.mark.parametrize(
    ("classes", "resource", "expected"),
    [
        pytest.param([make_class("a", GPU)], GPU, "a", id="named-by-the-class"),
        pytest.param([make_class("a", "")], "", None, id="empty-name-serves-nothing"),
        pytest.param([make_class("a")], GPU, None, id="no-name"),
        pytest.param(
            [make_class("a")], "deviceclass.resource.kubernetes.io/a", "a", id="by-class-name"
        ),
        pytest.param(
            [make_class("a")], "deviceclass.resource.kubernetes.io/b", None, id="no-such-class"
        ),
        pytest.param(
            [make_class("a", GPU, 20), make_class("b", GPU, 10)], GPU, "a", id="later-wins"
        ),
        pytest.param(
            [make_class("b", GPU, 10), make_class("a", GPU, 10)], GPU, "a", id="tie-smaller-name"
        ),
        pytest.param(
            [make_class("a", GPU), make_class("b", GPU, 10)], GPU, "b", id="no-time-is-the-oldest"
        ),
    ],
)
def test_the_class_of_a_resource(
    classes: list[DeviceClass], resource: str, expected: str | None
) -> None:
    objects = ClusterObjects()
    for each in classes:
        objects.device_classes.put(each)
    found = DeviceClassMap(objects.device_classes).class_of(resource)
    assert (None if found is None else found.metadata.name) == expected


def test_the_map_follows_the_store() -> None:
    objects = ClusterObjects()
    classes = DeviceClassMap(objects.device_classes)
    assert classes.class_of(GPU) is None
    objects.device_classes.put(make_class("a", GPU))
    assert classes.class_of(GPU) is not None
    objects.device_classes.remove("a")
    assert classes.class_of(GPU) is None
