"""Runs many seeds in processes, and names each one that fails, in any way.

A run can break an invariant, end with an exception (`simulation` judges both), not end, or end its
process. After the last one the pool is gone with all that was under way: these seeds are run again,
one at a time, so that the one which did it is known.
"""

import logging
import signal
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context
from types import FrameType
from typing import Final, NamedTuple, NoReturn

from kubestow.editions.edition import Version
from tools.faults.plan import make_plan
from tools.faults.simulation import Outcome, failed, run_plan

# A seed takes some seconds, on a busy machine a minute.
SEED_S_MAX: Final = 900.0
# How long what is left of such a run may take to end.
_END_S_MAX: Final = 10.0
# A new interpreter: a fork would copy the threads of the parent.
_CONTEXT: Final = get_context("spawn")

Play = Callable[[int], Outcome]


class SeedResult(NamedTuple):
    seed: int
    outcome: Outcome


class EndlessError(SystemExit):
    """A seed took too long. Event loops pass on errors of this kind, and no handler catches it."""


def run_seeds(
    numbers: Iterable[int], *, processes: int, play: Play | None = None
) -> Generator[SeedResult, None, None]:
    """The results as they come. The order of those that run at a time may change."""
    waiting, play = iter(numbers), play or play_seed
    is_over = False
    while not is_over:
        with ProcessPoolExecutor(processes, _CONTEXT) as pool:
            left = yield from _run_in(pool, waiting, processes, play)
        is_over = not left
        for seed in left:
            yield _run_alone(seed, play)


def play_seed(seed: int, limit_s: float = SEED_S_MAX, edition: Version = Version.V1_36) -> Outcome:
    """Run one seed in this process."""
    logging.disable(logging.CRITICAL)
    try:
        with _limit(limit_s):
            return run_plan(make_plan(seed, edition))
    except EndlessError:
        return failed("the run ends", f"it takes more than {limit_s:g} s")


def _run_in(
    pool: ProcessPoolExecutor, waiting: Iterable[int], count: int, play: Play
) -> Generator[SeedResult, None, list[int]]:
    """Runs what waits; returns the seeds that were under way when the pool broke."""
    busy: dict[Future[Outcome], int] = {}
    while True:
        for seed in islice(waiting, count - len(busy)):
            try:
                busy[pool.submit(play, seed)] = seed
            except BrokenProcessPool:
                return sorted((*busy.values(), seed))
        if not busy:
            return []
        for future in wait(busy, return_when=FIRST_COMPLETED).done:
            if isinstance(future.exception(), BrokenProcessPool):
                return sorted(busy.values())
            yield SeedResult(busy.pop(future), future.result())


def _run_alone(seed: int, play: Play) -> SeedResult:
    with ProcessPoolExecutor(1, _CONTEXT) as pool:
        try:
            return SeedResult(seed, pool.submit(play, seed).result())
        except BrokenProcessPool as error:
            return SeedResult(seed, failed("the process goes on", str(error)))


@contextmanager
def _limit(seconds: float) -> Generator[None, None, None]:
    """Raises EndlessError in the block after this time."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise EndlessError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, _END_S_MAX)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
