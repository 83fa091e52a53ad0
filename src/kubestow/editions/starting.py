"""How the process of an edition that is not modern is built (`service.process_parts`)."""

from collections.abc import Callable

import msgspec
import numpy as np

from kubestow.clock import Clock
from kubestow.editions.choosing import rules_of
from kubestow.editions.shared.algorithm_source import find_config_map
from kubestow.editions.v1_9.engine.algorithm import algorithm_of
from kubestow.editions.v1_9.service.metrics import ProcessMetricsV19
from kubestow.editions.v1_9.service.process import ProcessV19
from kubestow.editions.v1_20.service.plugin_config import with_policy
from kubestow.editions.v1_20.service.policy_process import PolicyProcess
from kubestow.service.connections import Connections
from kubestow.service.loops import Loops
from kubestow.service.metrics.process_metrics import ProcessMetrics
from kubestow.service.options import SchedulerOptions
from kubestow.service.process_parts import ProcessParts
from kubestow.service.run import ServiceProcess


def edition_parts(
    options: SchedulerOptions, clock: Clock, rng: np.random.Generator
) -> ProcessParts:
    """The parts of the edition that the options name; raises ConfigError."""
    if options.choice.edition.has_plugins:
        return _parts_with_plugins(options, clock, rng)
    return _parts_v1_9(options, clock, rng)


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
        flags = options.choice.algorithm
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
    metrics = ProcessMetrics(options, clock, rng, options.choice.edition.metric_names)
    rules = rules_of(options.choice.edition)

    async def build(
        connections: Connections,
        *,
        hostname: str,
        loops: Loops | None = None,
        set_verbosity: Callable[[int], None] | None = None,
        on_synced: Callable[[], None] | None = None,
    ) -> ServiceProcess:
        choice = options.choice
        config_map = await find_config_map(choice.algorithm, connections.main)
        config = with_policy(options.config, choice, config_map and config_map.data)
        return PolicyProcess(
            msgspec.structs.replace(options, config=config),
            connections,
            metrics,
            clock,
            rng,
            hostname=hostname,
            rules=rules,
            config_map=config_map,
            loops=loops,
            set_verbosity=set_verbosity,
            on_synced=on_synced,
        )

    return ProcessParts(metrics, build)
