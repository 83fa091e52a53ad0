"""Two classes that want one resource name (spec 08 B11)."""

from datetime import UTC, datetime

import pytest

from kubestow.api.device import DeviceClass
from kubestow.index.devices.classes import classes_by_resource
from kubestow.testing.devices import make_device_class

GPU = "example.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/"


def contender(name: str, day: int) -> DeviceClass:
    created = datetime(2026, 1, day, tzinfo=UTC)
    return make_device_class(name, extended_resource=GPU, created=created)


OLD, NEW = contender("old", 1), contender("new", 2)


@pytest.mark.parametrize(
    ("classes", "served"),
    [
        pytest.param([OLD, NEW], {GPU: "new", IMPLICIT + "old": "old", IMPLICIT + "new": "new"},
                     id="B11-there-before-the-winner"),
        pytest.param([NEW, OLD], {GPU: "new", IMPLICIT + "new": "new"}, id="B11-came-and-lost"),
        pytest.param(
            [contender("b", 1), contender("a", 1)],
            {GPU: "a", IMPLICIT + "a": "a", IMPLICIT + "b": "b"},
            id="equal-age-smaller-name",
        ),
    ],
)  # fmt: skip
def test_the_order_of_arrival_matters(classes: list[DeviceClass], served: dict[str, str]) -> None:
    found = classes_by_resource(classes)
    assert {name: each.metadata.name for name, each in found.items()} == served
