"""How the process of an older scheduler is built (`service.process_parts`)."""

from collections.abc import Callable

import msgspec
import numpy as np

from kubestow.clock import Clock
from kubestow.editions.choosing import edition_of
from kubestow.editions.compatibility import Compatibility
from kubestow.editions.shared.algorithm_source import find_config_map
from kubestow.editions.v1_9.engine.algorithm import algorithm_of
from kubestow.editions.v1_9.service.metrics import ProcessMetricsV19
from kubestow.editions.v1_9.service.process import ProcessV19
from kubestow.editions.v1_20.service.metric_names import older_metric_names
from kubestow.editions.v1_20.service.plugin_config import with_policy
from kubestow.editions.v1_20.service.policy_process import PolicyProcess
from kubestow.service.connections import Connections
from kubestow.service.loops import Loops
from kubestow.service.metrics.process_metrics import ProcessMetrics
from kubestow.service.options import SchedulerOptions
from kubestow.service.process_parts import ProcessParts
from kubestow.service.run import ServiceProcess


def older_parts(options: SchedulerOptions, clock: Clock, rng: np.random.Generator) -> ProcessParts:
    """Those of the version that the options name; raises ConfigError."""
    if options.older.version is Compatibility.V1_9:
        return _parts_v1_9(options, clock, rng)
    return _parts_with_plugins(options, clock, rng)


def _parts_v1_9(options: SchedulerOptions, clock: Clock, rng: np.random.Generator) -> ProcessParts:
    metrics = ProcessMetricsV19(options)

    async def build(
        connections: Connections,
        *,
        hostname: str,
        loops: Loops | None = None,
        set_verbosity: Callable[[int], None] | None = None,
        on_synced: Callable[[], None] | None = None,
    ) -> ServiceProcess:
        flags = options.older.algorithm
        config_map = await find_config_map(flags, connections.main)
        algorithm = algorithm_of(flags, None if config_map is None else config_map.data)
        return ProcessV19(
            options,
            algorithm,
            connections,
            metrics,
            clock,
            rng,
            hostname=hostname,
            config_map=config_map,
            loops=loops,
            set_verbosity=set_verbosity,
            on_synced=on_synced,
        )

    return ProcessParts(metrics, build)


def _parts_with_plugins(
    options: SchedulerOptions, clock: Clock, rng: np.random.Generator
) -> ProcessParts:
    metrics = ProcessMetrics(options, clock, rng, older_metric_names(options.older.version))
    edition = edition_of(options.older.version)

    async def build(
        connections: Connections,
        *,
        hostname: str,
        loops: Loops | None = None,
        set_verbosity: Callable[[int], None] | None = None,
        on_synced: Callable[[], None] | None = None,
    ) -> ServiceProcess:
        older = options.older
        config_map = await find_config_map(older.algorithm, connections.main)
        config = with_policy(options.config, older, config_map and config_map.data)
        return PolicyProcess(
            msgspec.structs.replace(options, config=config),
            connections,
            metrics,
            clock,
            rng,
            hostname=hostname,
            edition=edition,
            config_map=config_map,
            loops=loops,
            set_verbosity=set_verbosity,
            on_synced=on_synced,
        )

    return ProcessParts(metrics, build)
