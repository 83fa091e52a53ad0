"""The scenario that a task plays: from its file, of a recording, or of documents that are placed as
`simulate` does."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import InputError
from kubestow.simulator.comparison.recorded import recorded_scenario
from kubestow.simulator.comparison.scenario_files import unpacked
from kubestow.simulator.comparison.task import Material
from kubestow.simulator.gang_definitions import dialects_of
from kubestow.simulator.manifests import select_manifests
from kubestow.simulator.scenario.scenario import Scenario
from kubestow.simulator.scenario.stages import placing
from kubestow.simulator.traces.use_files import measured_series
from kubestow.simulator.usage.plan import UsagePlan
from kubestow.usage.file_format import read_lines


@contextmanager
def scenario_of(
    material: Material, config: SchedulerConfig, without: Sequence[str] = ()
) -> Generator[Scenario, None, None]:
    """The scenario that is played; its files exist inside the block. Actions named in `without` are
    left out."""
    if without and material.scenario is None:
        raise InputError(f"without:{without[0]} leaves out an action, and there is no scenario")
    if material.recorded is not None:
        yield _with_use(recorded_scenario(material.name, material.recorded), material.usage)
    elif material.scenario is not None:
        with unpacked(material.scenario, material.documents, without) as scenario:
            until_s = scenario.until_s if material.until_s is None else material.until_s
            yield replace(scenario, until_s=until_s)
    else:
        # Which groups of pods are read depends on the configuration.
        read = select_manifests(material.documents, dialects=dialects_of(config))
        yield placing(read.documents, name=material.name, limit_s=material.limit_s, has_course=True)


def _with_use(scenario: Scenario, usage: bytes | None) -> Scenario:
    if usage is None:
        return scenario
    series = measured_series(read_lines(usage), start_s=scenario.start.timestamp())
    return replace(scenario, usage=UsagePlan(series=series))
