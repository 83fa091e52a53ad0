"""Tasks in copies of this process, several at a time.

The input is read once, and each task begins with it in memory. A copy that dies (killed, out of
memory, a fault in compiled code of a plugin) is known with its task: that one has failed, all
others go on.
"""

import sys
from collections.abc import Generator, Sequence
from contextlib import closing
from functools import partial
from types import TracebackType
from typing import NamedTuple, Protocol

from kubestow.simulator.comparison.task import Material
from kubestow.simulator.comparison.work import run_with
from kubestow.simulator.forks import CAN_FORK, Forks, Send


class Finished(NamedTuple):
    """`content` is an `TaskOutcome` as JSON; without it `problem` says why there is none."""

    task_index: int
    content: bytes
    problem: str = ""


class Runner(Protocol):
    """Where tasks run."""

    def run(self, tasks: Sequence[bytes]) -> Generator[Finished, None, None]:
        """The results as they come; closing the iterator ends what is still running."""
        ...


class LocalRunner:
    """Up to `jobs` copies; use it in a `with` block."""

    def __init__(self, material: Material, jobs: int) -> None:
        self._material = material
        self._forks = Forks(jobs) if CAN_FORK else None

    def __enter__(self) -> "LocalRunner":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._forks is not None:
            self._forks.close()

    def run(self, tasks: Sequence[bytes]) -> Generator[Finished, None, None]:
        if self._forks is None:
            for index, task in enumerate(tasks):
                yield Finished(index, run_with(self._material, task))
            return
        contents: dict[int, bytes] = {}
        works = [partial(_run_in_copy, self._material, task) for task in tasks]
        with closing(self._forks.run(works)) as receiving:
            for number, message, problem in receiving:
                if message is not None:
                    contents[number] = message
                else:
                    content = contents.pop(number, b"")
                    yield Finished(number, b"" if problem else content, problem)


def _run_in_copy(material: Material, task: bytes, send: Send) -> None:
    # What plugins print must not get between the results on standard output.
    sys.stdout = sys.stderr
    send(run_with(material, task))
