"""A seed that fails is named, in whatever way it fails."""

import asyncio
import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import pytest

from kubestow.simulator.virtual_time import StalledError
from tools.faults import simulation
from tools.faults.plan import Plan, make_plan
from tools.faults.replicas import run_processes
from tools.faults.seeds import play_seed, run_seeds
from tools.faults.simulation import Outcome, failed, run_plan


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    level = logging.root.manager.disable
    yield
    logging.disable(level)


def play(seed: int) -> Outcome:
    if seed == 2:
        os._exit(3)
    return failed("played", str(seed)) if seed % 2 else play_nothing()


def play_nothing() -> Outcome:
    return failed("", "")._replace(broken=[])


@pytest.mark.slow
def test_a_seed_that_ends_its_process_is_named_and_all_others_are_run() -> None:
    results = dict(run_seeds(range(6), processes=2, play=play))
    broken = {seed: outcome.broken[0] for seed, outcome in results.items() if outcome.broken}
    assert sorted(results) == list(range(6))
    assert sorted(broken) == [1, 2, 3, 5]
    assert broken[2].invariant == "the process goes on"
    assert "terminated abruptly" in broken[2].text


# In a process of its own, as seeds are: what is interrupted leaves coroutines that nothing awaits.
@pytest.mark.slow
def test_a_seed_that_does_not_end_is_named() -> None:
    (result,) = run_seeds([3], processes=1, play=partial(play_seed, limit_s=0.01))
    (broken,) = result.outcome.broken
    assert str(broken) == "the run ends at 0.000 s: it takes more than 0.01 s"


def test_an_error_that_ends_a_run_is_an_invariant_that_broke(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(plan: Plan) -> Outcome:
        raise KeyError("nope")

    monkeypatch.setattr(simulation, "_run", fail)
    (broken,) = run_plan(make_plan(0)).broken
    assert broken.invariant == "the run ends"
    assert "KeyError: 'nope'" in broken.text
    assert "test_seeds.py" in broken.text


def test_a_task_that_survives_its_cancellation_is_named_with_its_place() -> None:
    async def stubborn() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(10)
        await asyncio.Event().wait()

    async def go() -> None:
        tasks.append(asyncio.create_task(stubborn()))
        await asyncio.sleep(1)

    tasks: list[asyncio.Task[None]] = []
    with pytest.raises(StalledError, match=r"wait: .*stubborn at locks\.py:\d+$"):
        run_processes(go())
