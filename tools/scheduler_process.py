"""`kubestow run` as a process of its own, for tests of the whole process.

No test sleeps: it waits for a line of the log, past or future.
"""

import asyncio
import os
import re
import signal
import ssl
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp

import kubestow

_SOURCES: Final = Path(kubestow.__file__).parents[1]
# Some lines are long: the configuration is one.
_LINE_BYTES_MAX: Final = 2**20


class SchedulerProcessRun:
    """A running scheduler and its log."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process: Final = process
        self.lines: Final[list[str]] = []
        self._has_ended = False
        self._changed = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    @property
    def log(self) -> str:
        return "".join(self.lines)

    async def wait_for_line(self, pattern: str) -> re.Match[str]:
        """The first line that has the pattern; AssertionError if the process ends without it."""
        return await self.wait_for_lines(pattern, 1)

    async def wait_for_lines(self, pattern: str, count: int) -> re.Match[str]:
        """As wait_for_line, for the line that is the last of this many."""
        seen = 0
        while True:
            for line in self.lines[seen:]:
                if found := re.search(pattern, line):
                    count -= 1
                    if not count:
                        return found
            seen = len(self.lines)
            async with self._changed:
                if self._has_ended:
                    raise AssertionError(f'the scheduler ended without "{pattern}":\n{self.log}')
                if seen == len(self.lines):
                    await self._changed.wait()

    async def address(self) -> str:
        """The address where it serves HTTPS."""
        return (await self.wait_for_line(r"Serving securely on (\S+)"))[1]

    async def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the exit code."""
        self.process.send_signal(number)
        return await self.exit_code()

    async def exit_code(self) -> int:
        code = await self.process.wait()
        await self._reading
        return code

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.exit_code()

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.lines.append(line.decode(errors="replace"))
            async with self._changed:
                self._changed.notify_all()
        self._has_ended = True
        # `wait_for_line` fails now that no further line can come.
        async with self._changed:
            self._changed.notify_all()


async def start_scheduler(*flags: str, import_from: Path | None = None) -> SchedulerProcessRun:
    """Start `kubestow run` with these flags, from the sources this package was imported from.

    Plugins of its configuration may be in `import_from`.
    """
    folders = [str(_SOURCES)] if import_from is None else [str(_SOURCES), str(import_from)]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "kubestow",
        "run",
        *flags,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        limit=_LINE_BYTES_MAX,
    )
    return SchedulerProcessRun(process)


@asynccontextmanager
async def running_scheduler(
    *flags: str, import_from: Path | None = None
) -> AsyncGenerator[SchedulerProcessRun, None]:
    """A started scheduler, killed on leaving if it still runs."""
    run = await start_scheduler(*flags, import_from=import_from)
    try:
        yield run
    finally:
        await run.kill()


async def ask_scheduler(address: str, path: str, *, token: str = "") -> tuple[int, str]:
    """Status and text of what a scheduler serves; its certificate is not checked."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    port = address.rpartition(":")[2]
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.get(f"https://127.0.0.1:{port}{path}", headers=headers) as response,
    ):
        return response.status, await response.text()
