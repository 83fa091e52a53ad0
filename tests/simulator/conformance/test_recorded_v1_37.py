"""Our decisions under `--compatibility v1.37` equal those recorded from kube-scheduler v1.37."""

import asyncio
import logging
from pathlib import Path
from typing import Final

import pytest

from kubestow.editions import edition_named
from kubestow.simulator.conformance import Recording, Report, load_recording, replay_scenario
from kubestow.simulator.conformance.recording import is_run
from kubestow.simulator.conformance.runs import replay_run
from kubestow.simulator.virtual_time import VirtualClock, VirtualTimeLoop

RECORDINGS: Final = Path(__file__).parents[3] / "conformance" / "v1.37"
FILES: Final = sorted(RECORDINGS.rglob("*.json.gz"))


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Recorded attempts fail in every way; formatting what is logged takes most of the time."""
    caplog.set_level(logging.CRITICAL + 1, "kubestow")


def replay(recording: Recording, every: int = 1) -> Report:
    report, edition = Report(), recording.edition
    loop = VirtualTimeLoop()
    clock = VirtualClock(loop)
    asyncio.set_event_loop(loop)
    try:
        for scenario in recording.scenarios[::every]:
            if is_run(scenario):
                replay_run(scenario, report, edition=edition)
            else:
                replay_scenario(scenario, report, clock=clock, edition=edition)
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    return report


def name_of(path: Path) -> str:
    return path.name.partition(".")[0]


def test_every_recording_is_of_this_edition() -> None:
    assert len(FILES) >= 16
    assert {load_recording(path).edition for path in FILES} == {edition_named("v1.37")}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_sample_is_ours(path: Path) -> None:
    assert replay(load_recording(path), every=8).differences == []


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_all_recorded_decisions_are_ours(path: Path) -> None:
    assert replay(load_recording(path)).differences == []
