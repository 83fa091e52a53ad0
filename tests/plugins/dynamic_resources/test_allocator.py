"""Answers that are kept, and when they are not (spec 08 B6, B7)."""

import pytest

from kubestow.cache.objects import ClusterObjects
from kubestow.clock import Clock
from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.plugins._shared.devices import KnownDevices
from kubestow.plugins.dynamic_resources.allocator import (
    ClaimShape,
    DeviceAllocator,
    InvalidPools,
    TimedOut,
)
from kubestow.plugins.dynamic_resources.search import Features
from kubestow.testing import ManualClock, make_node
from kubestow.testing.devices import (
    make_allocation,
    make_claim,
    make_device_class,
    make_request,
    make_slice,
)

NODE = make_node("n1")


class Lab:
    def __init__(self, *, clock: Clock | None = None, timeout_s: float = 10) -> None:
        self.objects = ClusterObjects()
        self.objects.put(make_device_class(), make_slice("d1", "d2", node="n1", name="s"))
        known = KnownDevices.of(self.objects, DEFAULT_GATES)
        self.allocator = DeviceAllocator(known, Features(), clock or ManualClock(), timeout_s)

    def devices(self, *, count: int = 1, name: str = "c") -> list[str] | None:
        shape = ClaimShape([make_claim(name, make_request(count=count))])
        allocations = self.allocator.allocate(NODE, shape)
        if allocations is None:
            return None
        return [result.device for result in allocations[0].result.devices.results]


def test_equal_claims_get_equal_answers_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab()
    assert lab.devices(name="one") == ["d1"]

    def fail(*_: object) -> None:
        raise AssertionError("searched again")

    monkeypatch.setattr("kubestow.plugins.dynamic_resources.search.Search.run", fail)
    assert lab.devices(name="two") == ["d1"]


def test_taken_devices_are_noticed() -> None:
    lab = Lab()
    assert lab.devices() == ["d1"]
    lab.objects.put(make_claim("other", allocation=make_allocation("pool/d1")))
    assert lab.devices() == ["d2"]
    lab.objects.resource_claims.remove("default", "other")
    assert lab.devices() == ["d1"]


def test_changed_slices_and_classes_are_noticed() -> None:
    lab = Lab()
    assert lab.devices() == ["d1"]
    lab.objects.put(make_slice("new", node="n1", name="s"))
    assert lab.devices() == ["new"]
    lab.objects.put(make_device_class("any", "false"))
    assert lab.devices() is None


def test_other_requests_are_searched_for() -> None:
    lab = Lab()
    assert lab.devices() == ["d1"]
    assert lab.devices(count=2) == ["d1", "d2"]
    assert lab.devices(count=3) is None


def test_invalid_pools_change_the_words_of_a_failure_only() -> None:
    lab = Lab()
    lab.objects.put(make_slice("x", "x", pool="broken", node="n1"))
    assert lab.devices() == ["d1"]
    for _ in range(2):
        with pytest.raises(InvalidPools):
            lab.devices(count=3)


@pytest.mark.parametrize(("timeout_s", "is_late"), [(1e-9, True), (0, False), (10, False)])
def test_a_nanosecond_is_never_enough(timeout_s: float, is_late: bool) -> None:
    lab = Lab(timeout_s=timeout_s)
    for _ in range(2):
        if is_late:
            with pytest.raises(TimedOut):
                lab.devices()
        else:
            assert lab.devices() == ["d1"]


def test_the_clock_is_looked_at_while_searching() -> None:
    class Ticking(ManualClock):
        def monotonic_s(self) -> float:
            self.advance_s(1)
            return super().monotonic_s()

    assert Lab(clock=Ticking(), timeout_s=10).devices() == ["d1"]
    with pytest.raises(TimedOut):
        Lab(clock=Ticking(), timeout_s=0.5).devices()
