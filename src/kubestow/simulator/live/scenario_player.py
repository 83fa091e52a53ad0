"""A scenario that is loaded into the demo's cluster: it goes on as that cluster's time does."""

import asyncio
import logging

from kubestow.api.decode import is_map
from kubestow.api.files import parse_document
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import Clock
from kubestow.errors import DecodeError, InputError
from kubestow.simulator.scenario.document import API_VERSION, KIND
from kubestow.simulator.scenario.plan import follow_plan
from kubestow.simulator.scenario.reading import parse_scenario
from kubestow.simulator.scenario.scenario import Scenario
from kubestow.simulator.scenario.world import ScenarioWorld

logger = logging.getLogger(__name__)


def scenario_in(text: str, name: str) -> Scenario | None:
    """The scenario of a text, None if it is something else; InputError with the place of a mistake.

    `name` is used in errors.
    """
    raw = text.encode()
    try:
        value = parse_document(raw, name=name)
    except DecodeError:
        return None  # several objects, or no YAML: other readers say it better
    if not is_map(value) or (value.get("apiVersion"), value.get("kind")) != (API_VERSION, KIND):
        return None
    return parse_scenario(raw, name)


class ScenarioPlayer:
    """Plays one scenario at a time."""

    def __init__(self, store: MemoryCluster, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def play(self, scenario: Scenario) -> None:
        """Begin with its arrivals and actions; its cluster is there already."""
        self.stop()
        self._task = asyncio.create_task(self._follow(scenario))

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self, scenario: Scenario) -> None:
        world = ScenarioWorld(self._store, self._clock)
        try:
            await follow_plan(scenario, scenario.seed, world, self._clock)
        except InputError as error:
            # A person may have deleted what the scenario is about.
            logger.warning("The scenario has ended: %s", error)
