"""What `kubestow run` does: set up logging and signals, choose an event loop, run `service.run`."""

import asyncio
import importlib
import logging
import resource
import socket
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from kubestow import collector
from kubestow.clock import Clock, SystemClock
from kubestow.errors import CacheCorruptedError, ConfigError
from kubestow.logs import fail
from kubestow.service.connections import connect
from kubestow.service.logging import LogSettings, Verbosity, configure_logging
from kubestow.service.loops import LoopThreads
from kubestow.service.options import LoggingOptions, RequestedText, SchedulerOptions, parse_options
from kubestow.service.process_parts import ProcessParts, todays_parts
from kubestow.service.run import RunError, announce_config
from kubestow.service.signals import StopSignals

log = logging.getLogger(__name__)

# The limit of many systems is 1,024, for programs that use the old `select`.
FILES_MAX: Final = 65_536


def run_process(arguments: Sequence[str], *, program: str) -> int:
    """Run a scheduler until it is stopped; the exit code. ConfigError before anything runs."""
    options = parse_options(arguments, program=program)
    if isinstance(options, RequestedText):
        print(options.text)
        return 0
    verbosity = configure_logging(_log_settings(options.logging))
    raise_file_limit()
    for line in options.flags.lines():
        log.log(logging.INFO - 1, "FLAG: --%s", line)
    try:
        with asyncio.Runner(loop_factory=event_loop_factory()) as runner:
            return runner.run(_run(options, verbosity))
    except CacheCorruptedError as error:
        log.critical("%s", error)
    except ConfigError:
        raise
    except RunError as error:
        fail(log, "command failed", error)
    except Exception:
        # A bug; the supervisor of the process restarts it.
        log.exception("command failed")
    return 1


def raise_file_limit() -> None:
    """Allow as many open files as the system does, as Go does at its start.

    Clients of the port can hold more connections than the usual limit, and then no other could be
    accepted.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_MAX if hard == resource.RLIM_INFINITY else min(FILES_MAX, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def event_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed: it halves the cost of reading and writing sockets."""
    try:
        return importlib.import_module("uvloop").new_event_loop
    except ImportError:
        return None


async def _run(options: SchedulerOptions, verbosity: Verbosity) -> int:
    clock, rng = SystemClock(), np.random.default_rng()
    parts = _parts(options, clock, rng)
    loops = LoopThreads(clock)
    try:
        connections = connect(options, parts.metrics.requests, clock, rng, post=loops.post)
        process = await parts.build(
            connections,
            hostname=socket.gethostname(),
            loops=loops,
            set_verbosity=verbosity.set,
            on_synced=collector.settle,
        )
        if announce_config(process):
            return 0
        StopSignals(process, loops.control).install()
        return await process.run()
    finally:
        loops.close()


def _parts(options: SchedulerOptions, clock: Clock, rng: np.random.Generator) -> ProcessParts:
    if options.choice.edition.is_modern:
        return todays_parts(options, clock, rng)
    # Imported here, like every other edition: only when it is to run.
    from kubestow.editions.starting import edition_parts

    return edition_parts(options, clock, rng)


def _log_settings(options: LoggingOptions) -> LogSettings:
    return LogSettings(
        format=options.format,
        verbosity=options.verbosity,
        vmodule=options.vmodule,
        split_stream=options.is_stream_split,
    )
