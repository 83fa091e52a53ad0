"""Meters enter what single observations would, whatever the order of their calls."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.framework.metrics import FILTER, PRE_FILTER, Timing, label_of
from kubestow.framework.status import Code, Status
from kubestow.service.metrics.catalogue import SchedulerCatalogue
from kubestow.service.metrics.meters import samples
from kubestow.service.metrics.recorders import SchedulerRecorder
from kubestow.service.metrics.registry import MetricsRegistry
from kubestow.testing import ManualClock

STATUSES = (None, Status(Code.SUCCESS), Status.unschedulable("no"), Status.skip())
Step = tuple[str, str, Status | None, float]

steps = st.lists(
    st.tuples(
        st.sampled_from(("resume", "skip", "point", "plugin", "wait", "algorithm", "attempt")),
        st.sampled_from((PRE_FILTER, FILTER)),
        st.sampled_from(STATUSES),
        # On bounds, below the lowest and above the highest.
        st.sampled_from((0.0, 1e-6, 1e-5, 0.0001, 0.00011, 0.001, 0.0016, 0.5, 40.0)),
    ),
    max_size=20,
)


class Side:
    """All metrics of a scheduler, and what is entered into them."""

    def __init__(self) -> None:
        self.registry = MetricsRegistry()
        self.catalogue = SchedulerCatalogue(self.registry, DEFAULT_GATES)
        self.clock = ManualClock()

    def text(self) -> str:
        return "".join(self.registry.texts())


class PlainMeter:
    """The same by the definitions: each duration is entered under its labels at once."""

    def __init__(self, side: Side, profile: str) -> None:
        self._catalogue, self._profile = side.catalogue, profile
        self._now_s = side.clock.monotonic_s
        self._started_s = self._point_s = self._plugin_s = self._now_s()
        self.timings: list[Timing] = []

    def step(self, what: str, point: str, status: Status | None) -> None:
        now_s, catalogue = self._now_s(), self._catalogue
        point_s, plugin_s = now_s - self._point_s, now_s - self._plugin_s
        label = label_of(status)
        match what:
            case "skip":
                self._started_s += point_s
            case "point":
                catalogue.point_duration.labels(point, label, self._profile).observe(point_s)
                self.timings.append(Timing(point, point_s))
            case "plugin":
                catalogue.plugin_duration.labels("P", point, label).observe(plugin_s)
                self.timings.append(Timing(point, plugin_s, "P"))
                self._plugin_s = now_s
            case "wait":
                catalogue.permit_wait_duration.labels(label).observe(point_s)
            case "algorithm":
                catalogue.algorithm_duration.only.observe(now_s - self._started_s)
            case "attempt":
                labels = (point, self._profile)
                catalogue.schedule_attempts.labels(*labels).inc()
                catalogue.attempt_duration.labels(*labels).observe(now_s - self._started_s)
            case _:
                pass
        if what in ("resume", "skip", "point", "wait"):
            self._point_s = self._plugin_s = now_s


@given(st.lists(st.tuples(st.sampled_from(("a", "b")), st.booleans(), steps), max_size=4))
def test_a_meter_enters_what_the_definitions_say(
    attempts: list[tuple[str, bool, list[Step]]],
) -> None:
    measured, plain = Side(), Side()
    recorder = SchedulerRecorder(measured.catalogue, measured.clock, np.random.default_rng(1))
    for profile, keeps_timings, made in attempts:
        meter = recorder.start_attempt(profile, keeps_timings=keeps_timings)
        expected = PlainMeter(plain, profile)
        calls: dict[str, Callable[[str, Status | None], None]] = {
            "resume": lambda point, status, meter=meter: meter.resume(),
            "skip": lambda point, status, meter=meter: meter.skip_pause(),
            "point": meter.point_ended,
            "plugin": lambda point, status, meter=meter: meter.plugin_ended("P", point, status),
            "wait": lambda point, status, meter=meter: meter.wait_ended(status),  # type: ignore[arg-type]
            "algorithm": lambda point, status, meter=meter: meter.algorithm_ended(),
            "attempt": lambda point, status, meter=meter: meter.attempt_ended(point),
        }
        for what, point, status, after_s in made:
            for side in (measured, plain):
                side.clock.advance_s(after_s)
            calls[what](point, status)
            expected.step(what, point, status)
        assert list(meter.timings) == (expected.timings if keeps_timings else [])
    assert measured.text() == plain.text()


def test_after_a_reset_a_meter_goes_on_from_zero() -> None:
    side = Side()
    recorder = SchedulerRecorder(side.catalogue, side.clock, np.random.default_rng(1))
    meter = recorder.start_attempt("a", keeps_timings=False)
    side.clock.advance_s(1)
    meter.point_ended(FILTER)
    side.registry.reset()
    side.clock.advance_s(2)
    meter.point_ended(FILTER)
    series = side.catalogue.point_duration.labels(FILTER, "Success", "a")
    assert (series.count, series.sum) == (1, 2)


def test_sampling_has_the_given_share() -> None:
    drawn = samples(np.random.default_rng(7))
    hits = sum(next(drawn) for _ in range(20_000))
    assert 1800 < hits < 2200


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_a_meter_says_whether_its_attempt_is_sampled(share: float) -> None:
    side = Side()
    rng = np.random.default_rng(3)
    recorder = SchedulerRecorder(side.catalogue, side.clock, rng, sampled_share=share)
    meters = [recorder.start_attempt("a", keeps_timings=False) for _ in range(2000)]
    assert sum(meter.is_sampled for meter in meters) == pytest.approx(2000 * share, rel=0.2)
