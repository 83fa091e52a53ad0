"""A scenario as the run needs it: streams of arrivals and of steps, in the order of time.

Streams are made again for every run and read as time advances, so a day of a hundred thousand pods
needs no list of them. Each is a function of the run's seed: the same seed gives the same stream.

Not here: the YAML form (`document`, `reading`), what a step does (`actions`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.simulator.usage.plan import UsagePlan
from kubestow.simulator.virtual_time import EPOCH

if TYPE_CHECKING:
    from kubestow.simulator.scenario.world import ScenarioWorld

SAMPLE_S: Final = 300.0
START_DELAY_S: Final = 1.0
STOP_S: Final = 1.0


class Arrival(NamedTuple):
    """An object that is created at a time."""

    # Seconds from the start of the run.
    time_s: float
    # A manifest: a Pod or anything that makes pods. One document may be used for many arrivals; if
    # it has no name, one is made of `generateName`, or of the owner and a number.
    document: JsonObject
    # How long its pods run once they started; None: until they are deleted, or as annotations say.
    duration_s: float | None = None
    # What `PodRow.owner` says of pods without a controller: mostly the name of an entry.
    owner: str = ""
    # How long after the arrival it is deleted, if it is still there.
    leaves_after_s: float | None = None


# The arrivals of one entry for a seed, in the order of time.
ArrivalSource = Callable[[int], Iterator[Arrival]]


class ScenarioAction(Protocol):
    """Changes the cluster; InputError if the scenario asks for what is not there."""

    def __call__(self, world: "ScenarioWorld", /) -> None: ...


class Step(NamedTuple):
    time_s: float
    action: ScenarioAction
    # Where it is written, for errors.
    place: str = ""


StepSource = Callable[[int], Iterator[Step]]


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    # How much virtual time is played.
    until_s: float
    # The cluster at the start, with what runs on it and waits.
    documents: Sequence[Document] = ()
    arrivals: Sequence[ArrivalSource] = ()
    steps: Sequence[StepSource] = ()
    # Where the entries of arrivals are written, by name, for errors.
    places: Mapping[str, str] = {}
    # Used unless a run gets another.
    seed: int = 0
    # The date at the start, which matters for CronJobs.
    start: datetime = EPOCH
    # Virtual time between two samples; longer if there would be too many samples.
    sample_s: float = SAMPLE_S
    # The label of nodes that `NodeRow.pool` shows.
    pool_label: str = ""
    # Whether controllers act; without them the pods are those that arrive, as in a recording.
    has_controllers: bool = True
    # How long pods take to start, and at most to stop.
    start_delay_s: float = START_DELAY_S
    stop_s: float = STOP_S
    # Whether it is one placement (`placing`): it ends when nothing is left to do, or at `until_s`.
    settles: bool = False
    # Whether pods that only fail again count as at rest, as in one placement.
    stops_repeating: bool = False
    # Of one placement: whether controllers act on nothing that was read from a server until the
    # scheduler changes it.
    stays: bool = False
    # Whether there are samples, and rows of pods that have a node or have ended at the start; then
    # a pod gets its node when it is bound, else when that is decided.
    has_course: bool = True
    # What pods really use; None: that is not computed.
    usage: UsagePlan | None = None
    # Goals of rebalancing whose figures are in samples.
    goals: Sequence[str] = ()


class Progress(NamedTuple):
    """How far a run is."""

    time_s: float
    until_s: float
    arrived: int
    placed: int
