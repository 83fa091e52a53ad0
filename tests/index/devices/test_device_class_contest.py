"""Two classes that want one resource name (spec 08 B11)."""

from datetime import UTC, datetime

import msgspec
import pytest

from kubestow.api.device import DeviceClass, DeviceClassSpec
from kubestow.cache.objects import ObjectStore
from kubestow.index.devices.classes import DeviceClassMap
from kubestow.testing.devices import make_device_class

GPU = "example.com/gpu"
NIC = "example.com/nic"
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
    store = ObjectStore[DeviceClass]()
    for each in classes:
        store.put(each)
    assert served_by(DeviceClassMap(store)) == served


def served_by(classes: DeviceClassMap) -> dict[str, str]:
    names = (GPU, NIC, *(IMPLICIT + name for name in ("old", "new", "a", "b")))
    found = {name: classes.class_of(name) for name in names}
    return {name: each.metadata.name for name, each in found.items() if each is not None}


def renamed(device_class: DeviceClass, resource: str | None) -> DeviceClass:
    spec = DeviceClassSpec(extended_resource_name=resource)
    return msgspec.structs.replace(device_class, spec=spec)


BOTH = {IMPLICIT + "old": "old", IMPLICIT + "new": "new"}


@pytest.mark.parametrize(
    ("events", "served"),
    [
        pytest.param(["-new"], {IMPLICIT + "old": "old"}, id="B15-no-class-takes-over"),
        pytest.param(
            ["-old"], {IMPLICIT + "new": "new"}, id="B15-the-loser-takes-the-name-with-it"
        ),
        pytest.param(
            ["-new", renamed(OLD, GPU)], {IMPLICIT + "old": "old", GPU: "old"}, id="B15-an-update"
        ),
        pytest.param([renamed(NEW, NIC)], {**BOTH, NIC: "new"}, id="B15-renamed"),
        pytest.param([renamed(OLD, None)], BOTH, id="B15-the-loser-gives-up-the-name"),
        pytest.param([renamed(NEW, GPU)], {**BOTH, GPU: "new"}, id="B15-an-update-that-keeps-it"),
        pytest.param(["-old", OLD], {IMPLICIT + "new": "new", IMPLICIT + "old": "old", GPU: "old"},
                     id="B15-a-name-given-up-is-free"),
    ],
)  # fmt: skip
def test_names_after_a_class_goes_away_or_changes(
    events: list[DeviceClass | str], served: dict[str, str]
) -> None:
    store = ObjectStore[DeviceClass]()
    classes = DeviceClassMap(store)
    store.put(OLD)
    store.put(NEW)
    for event in events:
        if isinstance(event, str):
            store.remove(event.removeprefix("-"))
        else:
            store.put(event)
    assert served_by(classes) == served
