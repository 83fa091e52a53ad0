"""Copies of this process, each of which does one piece of work.

A copy begins with everything that this process has in memory, such as a placed cluster or the input
of many runs, and shares the memory that neither of the two changes. As many work at one time as
there are tokens, over all processes: a copy that makes copies itself gives its token back meanwhile
(`lent`).

    take a token ──► fork ──► messages ──► the end of the pipe ──► token back

Tokens are bytes in a pipe, as of `make`. The process that forks takes and returns them, so that a
copy that is killed loses none.
"""

import gc
import os
import selectors
import signal
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

# Sends a message to the process that made the copy.
Send = Callable[[bytes], None]
Work = Callable[[Send], None]

# Elsewhere work is done here, one piece after the other.
CAN_FORK: Final = hasattr(os, "fork")

_LENGTH_BYTES: Final = 4
_CHUNK: Final = 1 << 16


class Received(NamedTuple):
    """A message of a piece of work; or its end, with a problem if that was not as planned."""

    number: int
    message: bytes | None
    problem: str = ""


class Forks:
    """Up to `jobs` copies at one time. The process that makes it closes it in the end."""

    def __init__(self, jobs: int) -> None:
        assert jobs > 0, jobs
        self._take_fd, self._give_fd = os.pipe()
        os.set_blocking(self._take_fd, False)
        os.write(self._give_fd, b"." * jobs)

    def close(self) -> None:
        """No copy can be made any more, and what was there is looked at by the collector again."""
        os.close(self._take_fd)
        os.close(self._give_fd)
        gc.unfreeze()

    def run(self, works: Iterable[Work]) -> Generator[Received, None, None]:
        """Do each in a copy of this process; their messages as they come.

        Closing the generator ends what is still running.
        """
        pending = enumerate(works)
        following = next(pending, None)
        running: dict[int, _Copy] = {}
        # What exists now is not looked at by the collectors of the copies: that would copy it.
        gc.freeze()
        try:
            while following is not None or running:
                fds = list(running)
                if following is not None:
                    fds.append(self._take_fd)
                for fd in _readable(fds):
                    if fd != self._take_fd:
                        yield from self._read(running, fd)
                    elif following is not None and self._take():
                        copy = _Copy(*following, others=list(running))
                        running[copy.fd] = copy
                        following = next(pending, None)
        finally:
            for copy in running.values():
                copy.stop()
                self._give()

    @contextmanager
    def lent(self) -> Generator[None]:
        """Give the token of this process to others for the length of a `with` block."""
        self._give()
        try:
            yield
        finally:
            while not self._take():
                _readable([self._take_fd])

    def _read(self, running: "dict[int, _Copy]", fd: int) -> Iterator[Received]:
        copy = running[fd]
        for message in copy.messages():
            yield Received(copy.index, message)
        if copy.has_ended:
            del running[fd]
            problem = copy.end()
            self._give()
            yield Received(copy.index, None, problem)

    def _take(self) -> bool:
        try:
            return bool(os.read(self._take_fd, 1))
        except BlockingIOError:
            return False

    def _give(self) -> None:
        os.write(self._give_fd, b".")


class _Copy:
    """A copy of this process, and the pipe from it."""

    def __init__(self, index: int, work: Work, *, others: Iterable[int]) -> None:
        self.index = index
        self.has_ended = False
        self._buffer = bytearray()
        self.fd, theirs = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if self._pid == 0:
            _work_and_exit(work, theirs, (self.fd, *others))
        os.close(theirs)

    def messages(self) -> Iterator[bytes]:
        """The whole messages that can be read now."""
        chunk = os.read(self.fd, _CHUNK)
        self.has_ended = not chunk
        self._buffer += chunk
        while len(self._buffer) >= _LENGTH_BYTES:
            length = int.from_bytes(self._buffer[:_LENGTH_BYTES], "little")
            end = _LENGTH_BYTES + length
            if len(self._buffer) < end:
                return
            message = bytes(self._buffer[_LENGTH_BYTES:end])
            del self._buffer[:end]
            yield message

    def end(self) -> str:
        """Wait for the end of the process; a problem if it was killed or failed."""
        os.close(self.fd)
        _, status = os.waitpid(self._pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return ""
        if code > 0:
            return f"the process that ran it ended with exit code {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        hint = "; was memory short? try fewer --jobs" if name == "SIGKILL" else ""
        return f"the process that ran it was ended by {name}{hint}"

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGTERM)
        self.end()


def _readable(fds: Iterable[int]) -> list[int]:
    with selectors.DefaultSelector() as selector:
        for fd in fds:
            selector.register(fd, selectors.EVENT_READ)
        return [key.fd for key, _ in selector.select()]


def _work_and_exit(work: Work, fd: int, others: Iterable[int]) -> None:
    """What a copy does; it never returns."""
    code = 1
    try:
        # Ctrl-C reaches all processes of a terminal; the first of them ends the others.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for other in others:
            os.close(other)

        def send(message: bytes) -> None:
            rest = memoryview(len(message).to_bytes(_LENGTH_BYTES, "little") + message)
            while rest:
                rest = rest[os.write(fd, rest) :]

        work(send)
        code = 0
    except BrokenPipeError:
        code = 0  # The process that made the copy has ended.
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
