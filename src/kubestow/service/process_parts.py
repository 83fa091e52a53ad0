"""What `kubestow run` needs to know of a version: its metrics, and how its process is built."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

import numpy as np

from kubestow.clock import Clock
from kubestow.editions.rules import Rules
from kubestow.service.connections import Connections
from kubestow.service.loops import Loops
from kubestow.service.metrics.process_metrics import ComponentMetrics, ProcessMetrics
from kubestow.service.options import SchedulerOptions
from kubestow.service.run import SchedulerProcess, ServiceProcess


class Build(Protocol):
    """Makes the process once there are connections; raises ConfigError."""

    def __call__(
        self,
        connections: Connections,
        *,
        hostname: str,
        loops: Loops | None = None,
        set_verbosity: Callable[[int], None] | None = None,
        on_synced: Callable[[], None] | None = None,
    ) -> Awaitable[ServiceProcess]: ...


class ProcessParts(NamedTuple):
    metrics: ComponentMetrics
    build: Build


def modern_parts(
    options: SchedulerOptions, clock: Clock, rng: np.random.Generator, rules: Rules
) -> ProcessParts:
    """The process of an edition whose gates, profiles and flags are read as those of the core."""
    metrics = ProcessMetrics(options, clock, rng, options.choice.edition.metric_names)

    async def build(
        connections: Connections,
        *,
        hostname: str,
        loops: Loops | None = None,
        set_verbosity: Callable[[int], None] | None = None,
        on_synced: Callable[[], None] | None = None,
    ) -> ServiceProcess:
        return SchedulerProcess(
            options,
            connections,
            metrics,
            clock,
            rng,
            hostname=hostname,
            rules=rules,
            loops=loops,
            set_verbosity=set_verbosity,
            on_synced=on_synced,
        )

    return ProcessParts(metrics, build)
