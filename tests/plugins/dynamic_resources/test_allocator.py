"""Searching in time (spec 08 B6)."""

import pytest

from kubestow.cache.objects import ClusterObjects
from kubestow.clock import Clock
from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.index.devices import KnownDevices
from kubestow.plugins.dynamic_resources.allocator import DeviceAllocator, InvalidPools, TimedOut
from kubestow.plugins.dynamic_resources.features import Features
from kubestow.plugins.dynamic_resources.requests import plan_claim
from kubestow.testing import ManualClock, make_node
from kubestow.testing.devices import make_claim, make_device_class, make_request, make_slice

NODE = make_node("n1")


class Lab:
    def __init__(self, *, clock: Clock | None = None, timeout_s: float = 10) -> None:
        self.objects = ClusterObjects()
        self.objects.put(make_device_class(), make_slice("d1", "d2", node="n1"))
        self._known = KnownDevices.of(self.objects, DEFAULT_GATES)
        self._allocator = DeviceAllocator(
            self._known, Features(), timeout_s, clock or ManualClock()
        )

    def devices(self, count: int = 1) -> list[str] | None:
        plan = plan_claim(make_claim("c", make_request(count=count)), self._known.classes.get)
        allocations = self._allocator.allocate(NODE, [plan])
        if allocations is None:
            return None
        return [result.device for result in allocations[0].result.devices.results]


def test_devices_are_found_or_not() -> None:
    assert Lab().devices(2) == ["d1", "d2"]
    assert Lab().devices(3) is None


def test_invalid_pools_change_the_words_of_a_failure_only() -> None:
    lab = Lab()
    lab.objects.put(make_slice("x", "x", pool="broken", node="n1"))
    assert lab.devices() == ["d1"]
    with pytest.raises(InvalidPools):
        lab.devices(3)


@pytest.mark.parametrize(("timeout_s", "is_late"), [(1e-9, True), (0, False), (10, False)])
def test_a_nanosecond_is_never_enough(timeout_s: float, is_late: bool) -> None:
    lab = Lab(timeout_s=timeout_s)
    if is_late:
        with pytest.raises(TimedOut):
            lab.devices()
    else:
        assert lab.devices() == ["d1"]


class Ticking(ManualClock):
    """A second passes with every look."""

    def monotonic_s(self) -> float:
        self.advance_s(1)
        return super().monotonic_s()


@pytest.mark.parametrize(("timeout_s", "is_late"), [(10, False), (0.5, True)])
def test_the_clock_is_looked_at_while_searching(timeout_s: float, is_late: bool) -> None:
    lab = Lab(clock=Ticking(), timeout_s=timeout_s)
    if is_late:
        with pytest.raises(TimedOut):
            lab.devices()
    else:
        assert lab.devices() == ["d1"]
