"""The scenario that a task plays: from its file, of a recording, or of documents that are placed as
`simulate` does."""

from collections.abc import Generator
from contextlib import contextmanager

from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.comparison.recorded import recorded_scenario
from kubestow.simulator.comparison.scenario_files import unpacked
from kubestow.simulator.comparison.task import Material
from kubestow.simulator.gang_definitions import dialects_of
from kubestow.simulator.manifests import select_manifests
from kubestow.simulator.scenario.scenario import Scenario
from kubestow.simulator.scenario.stages import placing


@contextmanager
def scenario_of(material: Material, config: SchedulerConfig) -> Generator[Scenario, None, None]:
    """Its files exist inside the block."""
    if material.recorded is not None:
        yield recorded_scenario(material.name, material.recorded)
    elif material.scenario is not None:
        with unpacked(material.scenario, material.documents) as scenario:
            yield scenario
    else:
        # Which groups of pods are read depends on the configuration.
        read = select_manifests(material.documents, dialects=dialects_of(config))
        yield placing(read.documents, name=material.name, limit_s=material.limit_s, has_course=True)
