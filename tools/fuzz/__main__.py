"""Runs inputs: `python -m tools.fuzz --inputs 1000000`, or for some minutes.

Each new defect is printed once, with an input that was made as small as possible and belongs in
the table of `tests/tools/fuzz/test_corpus.py`. An input may take two seconds and
allocate two gigabytes more than the program has; beyond that it is a defect too.
"""

# pyright: basic
# Inputs are values of any type, on purpose.

import argparse
import logging
import resource
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kubestow.clock import SystemClock
from tools.fuzz.mutation import Mutator, shrunk
from tools.fuzz.targets import TARGETS, Target

POOL: Final = 300  # inputs of a target that hypothesis makes
BATCH: Final = 2000  # inputs of one target in a row
INPUT_S_MAX: Final = 2.0
SHOWN_LENGTH_MAX: Final = 2000  # characters of an input
_BYTES_MORE: Final = 2 * 2**30

Place = tuple[str, str, str]  # target, type of the exception, line that raised it


class SlowInputError(Exception):
    """An input that takes too long."""


class Fuzzer:
    """Runs inputs of all targets in turn, and remembers which defects were printed."""

    def __init__(self, console: Console, seed: int) -> None:
        self.input_count = 0
        self.found: dict[Place, int] = {}
        self._console = console
        self._rng = np.random.default_rng(seed)
        self._pools: dict[str, list[Any]] = {}

    def run_batch(self, target: Target, size: int) -> None:
        """Inputs of hypothesis first, then changes of them."""
        pool = self._pools.get(target.name)
        if pool is None:
            self._pools[target.name] = self._run_pool(target, min(size, POOL))
            return
        mutator = Mutator(pool, self._rng)
        for _ in range(size):
            value = mutator.next()
            self.input_count += 1
            if (error := _failure_of(target, value)) is not None:
                self._count(target, value, error)

    def _run_pool(self, target: Target, size: int) -> list[Any]:
        pool: list[Any] = []

        def check(value: Any) -> None:
            self.input_count += 1
            pool.append(value)
            if (error := _failure_of(target, value)) is not None:
                self._count(target, value, error)

        batch = settings(
            max_examples=size,
            database=None,
            deadline=None,
            phases=(Phase.generate,),
            suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
        )
        seed(int(self._rng.integers(2**32)))(batch(given(target.inputs)(check)))()
        return pool

    def _count(self, target: Target, value: Any, error: Exception) -> None:
        """Count a defect; a new one is printed with the smallest input that shows it."""
        place = _place(target, error)
        self.found[place] = self.found.get(place, 0) + 1
        if self.found[place] > 1:
            return

        def fails(smaller: Any) -> bool:
            failure = _failure_of(target, smaller)
            return failure is not None and _place(target, failure) == place

        if not isinstance(error, SlowInputError):
            value = shrunk(value, fails)
        _, kind, line = place
        self._console.print(f"\n{target.name}: {kind} at {line}", markup=False, highlight=False)
        self._console.print(f"  {value!r}"[:SHOWN_LENGTH_MAX], markup=False, highlight=False)


def _failure_of(target: Target, value: Any) -> Exception | None:
    with _limited():
        try:
            target.check(value)
        except Exception as error:  # any of them is the defect that is looked for
            return error
    return None


def main() -> int:
    arguments = _parser().parse_args()
    logging.disable(logging.CRITICAL)
    _limit_memory()
    targets = [target for target in TARGETS if arguments.only in target.name]
    console = Console(stderr=True)
    fuzzer = Fuzzer(console, arguments.seed)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    ) as progress:
        task = progress.add_task("inputs", total=None if arguments.minutes else arguments.inputs)
        for target in _turns(arguments, targets, fuzzer):
            size = min(BATCH, max(1, arguments.inputs - fuzzer.input_count))
            fuzzer.run_batch(target, BATCH if arguments.minutes else size)
            progress.update(task, completed=fuzzer.input_count)
    print(f"{fuzzer.input_count} inputs of {len(targets)} targets, {len(fuzzer.found)} defects")
    return 1 if fuzzer.found else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.fuzz",
        description="Arbitrary input for every decoder and parser.",
    )
    parser.add_argument("--inputs", type=int, default=50_000, help="how many (50000)")
    parser.add_argument("--minutes", type=float, help="run for so long, instead of --inputs")
    parser.add_argument("--seed", type=int, default=0, help="another one gives other inputs (0)")
    parser.add_argument("--only", default="", help="targets whose name contains this")
    return parser


def _turns(
    arguments: argparse.Namespace, targets: list[Target], fuzzer: Fuzzer
) -> Iterator[Target]:
    """Each target in turn, until the number or the time is reached."""
    clock = SystemClock()
    end_s = clock.monotonic_s() + (arguments.minutes or 0) * 60
    while True:
        for target in targets:
            if arguments.minutes:
                if clock.monotonic_s() >= end_s:
                    return
            elif fuzzer.input_count >= arguments.inputs:
                return
            yield target


def _place(target: Target, error: BaseException) -> Place:
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        frame for frame in frames if "kubestow" in frame.filename and "fuzz" not in frame.filename
    ]
    line = f"{own[-1].filename.rpartition('kubestow/')[2]}:{own[-1].lineno}" if own else "the check"
    return target.name, type(error).__name__, line


def _limit_memory() -> None:
    with open("/proc/self/statm", encoding="ascii") as file:
        used_bytes = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used_bytes + _BYTES_MORE, resource.RLIM_INFINITY))


@contextmanager
def _limited() -> Iterator[None]:
    def stop(_: int, __: FrameType | None) -> None:
        raise SlowInputError(f"more than {INPUT_S_MAX} s")

    # The time of this process, not of a busy machine.
    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, INPUT_S_MAX)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


if __name__ == "__main__":
    sys.exit(main())
