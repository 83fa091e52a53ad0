"""The scenario that a task plays: from files, or from a recording."""

from collections.abc import Generator
from contextlib import contextmanager

from kubestow.simulator.comparison.recorded import recorded_scenario
from kubestow.simulator.comparison.scenario_files import unpacked
from kubestow.simulator.comparison.task import Material
from kubestow.simulator.scenario.scenario import Scenario


@contextmanager
def scenario_of(material: Material) -> Generator[Scenario | None, None, None]:
    """None if the documents are placed as `simulate` does; files exist inside the block."""
    if material.recorded is not None:
        yield recorded_scenario(material.name, material.recorded)
    elif material.scenario is not None:
        with unpacked(material.scenario, material.documents) as scenario:
            yield scenario
    else:
        yield None
