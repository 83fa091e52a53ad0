"""The records of a recording.

Times are nanoseconds since the start in the header. An object is the JSON text of what is decoded
of it, which is what a scheduler can read: environment variables, commands and secrets are not, nor
what it only passes on (`kept`).
"""

from typing import Annotated, Final

import msgspec

from kubestow.api.coordination import Binding, Event, Lease
from kubestow.api.decode import KINDS
from kubestow.api.meta import ApiObject
from kubestow.api.pod_group import PodGroupV1Beta1

FORMAT_VERSION: Final = 1
# More turns of the event loop are not counted: what an answer has set off has ended by then.
SETTLED_TURNS: Final = 16
# The origin of what `kubestow record` writes: changes only, of a cluster that another program
# schedules.
FOREIGN_ORIGIN: Final = "record"


# A file may be damaged: what is out of these bounds cannot be recorded.
Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class Header(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The first block, as JSON.

    origin        the command that made it: its scheduler is the one that decides, or, for
                  "record", another program
    started_ns    wall-clock time, nanoseconds since 1970
    config        the configuration as YAML
    edition       the version of kube-scheduler that the scheduler was; for "record", that of the
                  server
    gates         the feature gates that were set
    start_index   where the search for nodes begins next
    chance        the state of the scheduler's random generator, as JSON
    """

    format: int = FORMAT_VERSION
    program: str
    origin: str
    started_ns: Nanoseconds
    config: str
    edition: str = "v1.36"
    gates: dict[str, bool]
    start_index: Count = 0
    chance: str
    leaves_to_chance: bool = False


class Put(msgspec.Struct, frozen=True, array_like=True, tag="+"):
    """An object was added or changed."""

    at_ns: Nanoseconds
    kind: str
    text: bytes


class Removed(msgspec.Struct, frozen=True, array_like=True, tag="-"):
    """An object is gone. If its end was not seen, there is no text: the last known state counts."""

    at_ns: Nanoseconds
    kind: str
    namespace: str
    name: str
    text: bytes


class RecordedAttempt(msgspec.Struct, frozen=True, array_like=True, tag="?"):
    """A decision.

    pod         namespace/name
    nominated   the new nominated node, "" to clear it, None to leave it
    feasible    how many nodes fit; `evaluated` how many were looked at
    totals      CRC-32 of the feasible rows and their total scores
    """

    at_ns: Nanoseconds
    pod: str
    uid: str
    node: str
    message: str
    nominated: str | None
    victims: tuple[str, ...]
    evaluated: Count
    feasible: Count
    totals: int


class CycleBegan(msgspec.Struct, frozen=True, array_like=True, tag="!"):
    """A cycle has begun that may wait for extenders: it decides on what was known at this moment.

    Its decision follows, after what happened while it waited. `pod` is namespace/name.
    """

    at_ns: Nanoseconds
    pod: str
    uid: str


class Refusal(msgspec.Struct, frozen=True, array_like=True):
    """An `ApiError`; `cause` is that of an UnreachableError."""

    error: str
    code: Int32
    reason: str
    message: str
    cause: str = ""


class Answer(msgspec.Struct, frozen=True, array_like=True, tag="="):
    """A request has ended. `text` is the object that came back, if one did.

    Of several requests that are alike and under way, `position` of them were sent before this one.
    """

    at_ns: Nanoseconds
    request: str
    kind: str
    namespace: str
    name: str
    text: bytes
    refusal: Refusal | None
    position: Count = 0


class Posted(msgspec.Struct, frozen=True, array_like=True, tag="~"):
    """An extender has answered. `request` is a CRC-32 of URL and body; `error` if none came."""

    at_ns: Nanoseconds
    request: int
    code: Int32
    text: bytes
    error: str


class ClockSet(msgspec.Struct, frozen=True, array_like=True, tag="@"):
    """Wall-clock time is ahead of the time that has passed since the start, or behind it."""

    at_ns: Nanoseconds
    ahead_ns: Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]


class TurnsPassed(msgspec.Struct, frozen=True, array_like=True, tag="&"):
    """The event loop has made this many turns since the last record; SETTLED_TURNS stands for more.

    Between records of the same turn no task has gone on, except one whose request was answered.
    """

    at_ns: Nanoseconds
    count: Annotated[int, msgspec.Meta(ge=0, le=SETTLED_TURNS)]


Record = Put | Removed | CycleBegan | RecordedAttempt | Answer | Posted | ClockSet | TurnsPassed

# Records name classes. This one is not named after its kind.
_OTHER_NAMES: Final = {PodGroupV1Beta1.__name__: PodGroupV1Beta1}
# Kinds that no scheduler watches.
_UNWATCHED: Final = (Binding, Event, Lease)


def kind_of(name: str) -> type[ApiObject] | None:
    """The class of a kind that can be in a recording."""
    cls = KINDS.get(name) or _OTHER_NAMES.get(name)
    return None if cls in _UNWATCHED else cls
