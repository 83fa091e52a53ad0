"""A whole cluster in virtual time, with plugins to test: objects in, results out.

The scheduler is that of `kubestow run` with the default profile; the API server is in memory, and
kubelets and volume controllers are small ones of the simulator.
"""

from collections.abc import Iterable, Mapping

from kubestow.api.decode import to_document
from kubestow.api.meta import ApiObject
from kubestow.config.profile import PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.profiles import Registry
from kubestow.plugins.registry import REGISTRY, PluginClass
from kubestow.simulator.defaults import LIMIT_S
from kubestow.simulator.scenario.run import Simulation
from kubestow.simulator.scenario.stages import placing
from kubestow.simulator.simulation import SimulationResult, place


def simulate(
    objects: Iterable[ApiObject],
    *plugins: PluginClass,
    weights: Mapping[str, int] | None = None,
    limit_s: float = LIMIT_S,
) -> SimulationResult:
    """The results for the pods among the objects; the plugins run besides the default ones.

    `weights` are by the plugin's name, 1 by default. The run ends when nothing is left to do, at
    the latest after `limit_s` seconds of virtual time.
    """
    config, registry = _scheduler(plugins, weights)
    return place(map(to_document, objects), config, registry, limit_s=limit_s)


def make_simulation(
    objects: Iterable[ApiObject],
    *plugins: PluginClass,
    weights: Mapping[str, int] | None = None,
) -> Simulation:
    """A simulation of the objects, not yet running: for tests that change the cluster in a run.

    Call it in a coroutine that `run_in_virtual_time` runs.
    """
    return Simulation(placing(map(to_document, objects)), *_scheduler(plugins, weights))


def _scheduler(
    plugins: Iterable[PluginClass], weights: Mapping[str, int] | None
) -> tuple[SchedulerConfig, Registry]:
    weights = weights or {}
    enabled = tuple(PluginRef(plugin.name, weights.get(plugin.name, 0)) for plugin in plugins)
    profile = ProfileConfig(plugins=Plugins(multi_point=PluginSet(enabled=enabled)))
    registry = {**REGISTRY, **{plugin.name: plugin for plugin in plugins}}
    return SchedulerConfig(profiles=(profile,)), registry
