"""Worker processes of this machine.

Each worker has a pipe of its own, so that one that dies (killed, out of memory, a fault in compiled
code of a plugin) is known with the task it had: that task has failed, all others go on in a new
process. `concurrent.futures` would give up all of them.
"""

import multiprocessing
import signal
import sys
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Final, NamedTuple, Protocol

from kubestow.simulator.comparison.work import run_task

# A new interpreter: a fork would copy threads and the memory of the parent.
_CONTEXT: Final = multiprocessing.get_context("spawn")


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


class WorkerPool:
    """Up to `jobs` processes; use it in a `with` block, which ends them."""

    def __init__(self, material: bytes, jobs: int) -> None:
        assert jobs > 0, jobs
        self._material = material
        self._jobs = jobs
        self._idle: list[_Worker] = []

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        while self._idle:
            self._idle.pop().stop()

    def run(self, tasks: Sequence[bytes]) -> Generator[Finished, None, None]:
        waiting = deque(enumerate(tasks))
        busy: dict[Connection, _Worker] = {}
        try:
            while waiting or busy:
                while waiting and len(busy) < self._jobs:
                    worker = self._idle.pop() if self._idle else _Worker(self._material)
                    busy[worker.connection] = worker
                    worker.begin(*waiting.popleft())
                for connection in wait(list(busy)):
                    assert isinstance(connection, Connection)
                    worker = busy.pop(connection)
                    finished = worker.finish()
                    if finished.content:
                        self._idle.append(worker)
                    yield finished
        finally:
            for worker in busy.values():
                worker.stop()


class _Worker:
    def __init__(self, material: bytes) -> None:
        self.connection, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_serve, args=(theirs, material), daemon=True)
        self._process.start()
        # The only other end is that of the process, so its death ends what is read here.
        theirs.close()
        self._index = -1

    def begin(self, index: int, task: bytes) -> None:
        self._index = index
        # A process that is dead already shows when its result is read.
        with suppress(OSError):
            self.connection.send_bytes(task)

    def finish(self) -> Finished:
        try:
            return Finished(self._index, self.connection.recv_bytes())
        except (EOFError, OSError):
            self._process.join()
            problem = _end_text(self._process.exitcode or 0)
            self.stop()
            return Finished(self._index, b"", problem)

    def stop(self) -> None:
        self.connection.close()
        self._process.terminate()
        self._process.join()
        self._process.close()


def _serve(connection: Connection, material: bytes) -> None:
    """What a worker process does until its pipe is closed."""
    # Ctrl-C reaches all processes of a terminal; the parent ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What plugins print must not get between the results on standard output.
    sys.stdout = sys.stderr
    with suppress(EOFError, OSError):
        while True:
            connection.send_bytes(run_task(material, connection.recv_bytes()))


def _end_text(exit_code: int) -> str:
    if exit_code >= 0:
        return f"the worker process ended with exit code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    hint = "; was memory short? try fewer --jobs" if name == "SIGKILL" else ""
    return f"the worker process was ended by {name}{hint}"
