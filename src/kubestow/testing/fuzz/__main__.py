"""Runs inputs: `python -m kubestow.testing.fuzz --inputs 1000000`, or for some minutes.

Each new defect is printed once, with an input that is as small as hypothesis could make it and
that belongs in the table of `tests/testing/fuzz/test_corpus.py`. An input may take two seconds and
allocate two gigabytes more than the program has; beyond that it is a defect too.
"""

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

from hypothesis import HealthCheck, Phase, given, seed, settings
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kubestow.clock import SystemClock
from kubestow.testing.fuzz.targets import TARGETS, Target

BATCH: Final = 500  # inputs of one target in a row
INPUT_S_MAX: Final = 2.0
SHOWN_LENGTH_MAX: Final = 2000  # characters of an input
_BYTES_MORE: Final = 2 * 2**30

Place = tuple[str, str, str]  # target, type of the exception, line that raised it


class SlowInputError(Exception):
    """An input that takes too long."""


class Fuzzer:
    """Runs inputs of all targets in turn, and remembers which defects were printed."""

    def __init__(self, console: Console) -> None:
        self.input_count = 0
        self.found: dict[Place, int] = {}
        self._console = console

    def run_batch(self, target: Target, number: int, size: int) -> None:
        last: list[Any] = []

        def check(value: Any) -> None:
            self.input_count += 1
            last[:] = [value]
            with _limited():
                try:
                    target.check(value)
                except Exception as error:
                    place = _place(target, error)
                    if place not in self.found:
                        raise
                    self.found[place] += 1

        batch = settings(
            max_examples=size,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            report_multiple_bugs=False,
            suppress_health_check=tuple(HealthCheck),
        )
        try:
            seed(number)(batch(given(target.inputs)(check)))()
        except Exception as error:
            self._report(target, last[0], error)

    def _report(self, target: Target, value: object, error: Exception) -> None:
        place = _place(target, error)
        self.found[place] = 1
        _, kind, line = place
        self._console.print(f"\n[bold]{target.name}[/bold]: {kind} at {line}", highlight=False)
        self._console.print(f"  {value!r}"[:SHOWN_LENGTH_MAX], markup=False, highlight=False)


def main() -> int:
    arguments = _parser().parse_args()
    logging.disable(logging.CRITICAL)
    _limit_memory()
    targets = [target for target in TARGETS if arguments.only in target.name]
    console = Console(stderr=True)
    fuzzer = Fuzzer(console)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    ) as progress:
        task = progress.add_task("inputs", total=None if arguments.minutes else arguments.inputs)
        for number, target in _turns(arguments, targets, fuzzer):
            size = min(BATCH, max(1, arguments.inputs - fuzzer.input_count))
            fuzzer.run_batch(target, number, BATCH if arguments.minutes else size)
            progress.update(task, completed=fuzzer.input_count)
    print(f"{fuzzer.input_count} inputs of {len(targets)} targets, {len(fuzzer.found)} defects")
    return 1 if fuzzer.found else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kubestow.testing.fuzz",
        description="Arbitrary input for every decoder and parser.",
    )
    parser.add_argument("--inputs", type=int, default=50_000, help="how many (50000)")
    parser.add_argument("--minutes", type=float, help="run for so long, instead of --inputs")
    parser.add_argument("--seed", type=int, default=0, help="another one gives other inputs (0)")
    parser.add_argument("--only", default="", help="targets whose name contains this")
    return parser


def _turns(
    arguments: argparse.Namespace, targets: list[Target], fuzzer: Fuzzer
) -> Iterator[tuple[int, Target]]:
    """Seeds and targets, each target in turn, until the number or the time is reached."""
    clock = SystemClock()
    end_s = clock.monotonic_s() + (arguments.minutes or 0) * 60
    number = arguments.seed * 1_000_000
    while True:
        for target in targets:
            if arguments.minutes:
                if clock.monotonic_s() >= end_s:
                    return
            elif fuzzer.input_count >= arguments.inputs:
                return
            yield number, target
        number += 1


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
