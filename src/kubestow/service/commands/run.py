"""`kubestow run`: a scheduler for a cluster, with the flags of kube-scheduler.

Reads the arguments, sets up logging and signals, chooses the event loop and runs `service.run`.
Flags are read as kube-scheduler reads them, so they differ in style from those of other commands.
"""

import asyncio
import importlib
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import typer

from kubestow import collector
from kubestow.clock import SystemClock
from kubestow.errors import CacheCorruptedError, ConfigError
from kubestow.logs import fail
from kubestow.service.connections import connect
from kubestow.service.control_loop import ControlThread
from kubestow.service.logging import LogSettings, Verbosity, configure_logging
from kubestow.service.metrics.process_metrics import ProcessMetrics
from kubestow.service.options import LoggingOptions, RequestedText, SchedulerOptions, parse_options
from kubestow.service.run import RunError, SchedulerProcess, announce_config
from kubestow.service.signals import StopSignals
from kubestow.service.usage_errors import print_error

log = logging.getLogger(__name__)

PROGRAM: Final = "kubestow run"
# Typer must not parse any argument, not even `--help`.
SETTINGS: Final[dict[str, object]] = {
    "add_help_option": False,
    "context_settings": {
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "help_option_names": [],
    },
}


def run(context: typer.Context) -> None:
    """Schedule pods for a cluster, as kube-scheduler does.

    Example: kubestow run --kubeconfig=admin.conf --leader-elect=false -v=2

    `kubestow run --help` lists all flags.
    """
    raise typer.Exit(run_scheduler(context.args))


def run_scheduler(arguments: Sequence[str]) -> int:
    """Run a scheduler until it is stopped; the exit code."""
    try:
        return _run_with(parse_options(arguments, program=PROGRAM))
    except ConfigError as error:
        # Also of a configuration or kubeconfig: nothing runs yet.
        print_error(str(error), "run")
        return 1


def _run_with(options: SchedulerOptions | RequestedText) -> int:
    if isinstance(options, RequestedText):
        print(options.text)
        return 0
    verbosity = configure_logging(_log_settings(options.logging))
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


def event_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed: it halves the cost of reading and writing sockets."""
    try:
        return importlib.import_module("uvloop").new_event_loop
    except ImportError:
        return None


async def _run(options: SchedulerOptions, verbosity: Verbosity) -> int:
    clock, rng = SystemClock(), np.random.default_rng()
    metrics = ProcessMetrics(options, clock, rng)
    control = ControlThread(clock)
    try:
        connections = connect(options, metrics.requests, clock, rng, post=control.post)
        process = SchedulerProcess(
            options,
            connections,
            metrics,
            clock,
            rng,
            hostname=socket.gethostname(),
            control=control,
            set_verbosity=verbosity.set,
            on_synced=collector.settle,
        )
        if announce_config(process):
            return 0
        StopSignals(process, control).install()
        return await process.run()
    finally:
        control.close()


def _log_settings(options: LoggingOptions) -> LogSettings:
    return LogSettings(
        format=options.format,
        verbosity=options.verbosity,
        vmodule=options.vmodule,
        split_stream=options.is_stream_split,
    )
