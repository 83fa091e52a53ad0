"""What `kubestow run` does: set up logging and signals, choose an event loop, run `service.run`."""

import asyncio
import importlib
import logging
import resource
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec
import numpy as np

from kubestow import collector
from kubestow.clock import Clock, SystemClock
from kubestow.editions import CORE, NEWEST, edition_named
from kubestow.editions.edition import Edition
from kubestow.editions.rules import CORE_RULES
from kubestow.errors import CacheCorruptedError, ConfigError
from kubestow.logs import fail
from kubestow.service.connections import connect, edition_once_known, edition_to_run
from kubestow.service.logging import LogSettings, Verbosity, configure_logging
from kubestow.service.loops import LoopThreads
from kubestow.service.options import LoggingOptions, RequestedText, SchedulerOptions, parse_options
from kubestow.service.process_parts import ProcessParts, modern_parts
from kubestow.service.run import OtherEditionError, RunError, announce_config
from kubestow.service.signals import StopSignals, end_at_once

log = logging.getLogger(__name__)

# The limit of many systems is 1,024, for programs that use the old `select`.
FILES_MAX: Final = 65_536


def run_process(arguments: Sequence[str], *, program: str) -> int:
    """Run a scheduler until it is stopped; the exit code. ConfigError before anything runs."""
    options = _first_options(arguments, program)
    if isinstance(options, RequestedText):
        print(options.text)
        return 0
    verbosity = configure_logging(_log_settings(options.logging))
    raise_file_limit()
    for line in options.flags.lines():
        log.log(logging.INFO - 1, "FLAG: --%s", line)
    try:
        with asyncio.Runner(loop_factory=event_loop_factory()) as runner:
            chosen, is_known = runner.run(_with_edition(options, arguments, program))
            try:
                return runner.run(_run(chosen, verbosity, is_known=is_known))
            except OtherEditionError as other:
                end_at_once()
                chosen = _under(other.edition, arguments, program)
            # The file of a recording is the one that was begun.
            force = chosen.force or bool(chosen.record)
            return runner.run(_run(msgspec.structs.replace(chosen, force=force), verbosity))
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


def _first_options(arguments: Sequence[str], program: str) -> SchedulerOptions | RequestedText:
    """The options under the oldest modern edition, or the newest if they are wrong under that one:
    which edition it is to be, the server reports."""
    try:
        return parse_options(arguments, program=program)
    except ConfigError as error:
        try:
            return parse_options(arguments, program=program, edition=edition_named(NEWEST))
        except ConfigError:
            raise error from None


async def _with_edition(
    options: SchedulerOptions, arguments: Sequence[str], program: str
) -> tuple[SchedulerOptions, bool]:
    """The options under the edition of the server, unless the command line names one; False if the
    server does not answer yet."""
    if "compatibility" in options.flags.given or options.write_config_to:
        return options, True
    edition = await edition_to_run(options)
    if edition is None:
        return options, False
    return _under(edition, arguments, program), True


def _under(edition: Edition, arguments: Sequence[str], program: str) -> SchedulerOptions:
    chosen = parse_options(arguments, program=program, edition=edition)
    assert isinstance(chosen, SchedulerOptions), chosen
    return chosen


async def _run(options: SchedulerOptions, verbosity: Verbosity, *, is_known: bool = True) -> int:
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
        if not is_known:
            process.edition_once_known = partial(edition_once_known, options)
        if announce_config(process):
            return 0
        StopSignals(process, loops.control).install()
        return await process.run()
    finally:
        loops.close()


def _parts(options: SchedulerOptions, clock: Clock, rng: np.random.Generator) -> ProcessParts:
    edition = options.choice.edition
    if edition is CORE:
        return modern_parts(options, clock, rng, CORE_RULES)
    # Imported here, like every other edition: only when it is to run.
    if edition.is_modern:
        from kubestow.editions.choosing import rules_of

        return modern_parts(options, clock, rng, rules_of(edition))
    from kubestow.editions.starting import edition_parts

    return edition_parts(options, clock, rng)


def _log_settings(options: LoggingOptions) -> LogSettings:
    return LogSettings(
        format=options.format,
        verbosity=options.verbosity,
        vmodule=options.vmodule,
        split_stream=options.is_stream_split,
    )
