"""What the page is sent: a state, then batches of changes (docs/reference/page.md).

Nodes and pods are rows, lists of values in the order of the fields of `NodeRow` and `PodRow`.
Values that many rows share are numbers that refer to word lists; these grow and are never
rewritten until the next state.
"""

from typing import Final, Literal

import msgspec

from kubestow.queue.moves import Place

# Values of `PodRow.place`, by index; -1 is a pod that does not wait.
PLACES: Final = tuple(place.value for place in Place)
NO_PLACE: Final = -1
NO_NODE: Final = -1
# The index of the empty text in `owners`, `reasons` and `rejectors` of `Words`.
NO_WORD: Final = 0

Mode = Literal["run", "demo", "recording"]
Result = Literal["scheduled", "unschedulable", "error"]


class _Sent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of what is sent as an object."""


class NodeRow(msgspec.Struct, frozen=True, array_like=True):
    """A node.

    id            a number that no other node of this state has
    groups        the value of each label in `Words.groupings`; "" where the node has none
    taints        as `key=value:effect`, or `key:effect` without a value
    allocatable   by resource, in the order of `Words.resources`; where it is shorter, 0
    requested     likewise; of `pods`, how many there are
    created       milliseconds since 1970; 0 if it is not known
    """

    id: int
    name: str
    groups: tuple[str, ...]
    unschedulable: bool
    ready: bool
    taints: tuple[str, ...]
    allocatable: tuple[int, ...]
    requested: tuple[int, ...]
    created: int


class PodRow(msgspec.Struct, frozen=True, array_like=True):
    """A pod that has not ended.

    key        namespace/name
    node       the id of its node, also while it is being bound; -1 without one
    place      the index of its place in the queue; -1 if it does not wait
    owner      the index of its controller in `Words.owners`
    requests   the index of its requests in `Words.requests`
    reason     the index of its PodScheduled condition's message in `Words.reasons`, while it waits
    rejectors  the index of the plugins that rejected it, or hold it back, in `Words.rejectors`
    created    milliseconds since 1970
    """

    key: str
    node: int
    place: int
    priority: int
    owner: int
    requests: int
    reason: int
    rejectors: int
    terminating: bool
    created: int


class AttemptRow(msgspec.Struct, frozen=True, array_like=True):
    """An attempt to place a pod.

    id          grows with each attempt
    time        milliseconds since 1970
    node        the node that was chosen, or ""
    reason      the index in `Words.reasons`
    nominated   the node from which pods are evicted for it, or ""
    owner       the index of the pod's controller in `Words.owners`
    """

    id: int
    time: int
    pod: str
    node: str
    result: Result
    reason: int
    duration_ms: float
    nominated: str
    victims: int
    owner: int


class SeriesPoint(msgspec.Struct, frozen=True, array_like=True):
    """One second. Seconds without attempts and without a change of the queue are left out.

    time        the begin, milliseconds since 1970
    p50_ms      latency of the attempts of this second
    places      how many pods are at each place at the end of the second
    """

    time: int
    scheduled: int
    unschedulable: int
    errors: int
    p50_ms: float
    p99_ms: float
    places: tuple[int, ...]


class Resource(_Sent, frozen=True, kw_only=True):
    """`unit` of its amounts: thousandths of a core, bytes, or pieces."""

    name: str
    unit: Literal["milli", "bytes", "count"]


class Words(_Sent, frozen=True, kw_only=True):
    """What rows refer to by index. In a batch: what is appended to each list."""

    resources: tuple[Resource, ...] = ()
    groupings: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    requests: tuple[tuple[int, ...], ...] = ()
    reasons: tuple[str, ...] = ()
    rejectors: tuple[str, ...] = ()


class ClockState(_Sent, frozen=True, kw_only=True):
    """`time` is in milliseconds since 1970; `speed` is seconds of the cluster per real second.

    canChange   whether the actions `pause`, `resume` and `speed` work
    """

    time: int
    speed: float = 1.0
    paused: bool = False
    can_change: bool = False


class QueueState(_Sent, frozen=True, kw_only=True):
    """`places` counts pods by place. `rejectors` are the most frequent: the index in the word list,
    and how many waiting pods have it."""

    places: tuple[int, ...]
    rejectors: tuple[tuple[int, int], ...] = ()


class PluginTime(msgspec.Struct, frozen=True, array_like=True):
    """How long calls of a plugin took since the page follows; in `run` one attempt of ten is
    measured. Without plugin: the whole extension point, in every attempt."""

    point: str
    plugin: str
    calls: int
    total_ms: float


class Counts(_Sent, frozen=True, kw_only=True):
    """Since the page follows. `skipped` are attempts that were not copied for explanations."""

    attempts: int = 0
    attempts_dropped: int = 0
    skipped: int = 0
    resets: int = 0


class Leader(_Sent, frozen=True, kw_only=True):
    """`elects`: whether there is an election. Without one the process always leads."""

    elects: bool = False
    leads: bool = True
    identity: str = ""


class ProfilePlugin(_Sent, frozen=True, kw_only=True):
    """`points` are its extension points; `weight` that of its scores, 0 if it has none."""

    name: str
    points: tuple[str, ...]
    weight: int = 0


class ProfileState(_Sent, frozen=True, kw_only=True):
    name: str
    plugins: tuple[ProfilePlugin, ...]


class SchedulerState(_Sent, frozen=True, kw_only=True):
    """`config` is the configuration as YAML."""

    version: str
    upstream: str
    leader: Leader
    profiles: tuple[ProfileState, ...]
    config: str


class NodeColumns(_Sent, frozen=True, kw_only=True):
    """`NodeRow` by column."""

    id: list[int]
    name: list[str]
    groups: list[tuple[str, ...]]
    unschedulable: list[bool]
    ready: list[bool]
    taints: list[tuple[str, ...]]
    allocatable: list[tuple[int, ...]]
    requested: list[tuple[int, ...]]
    created: list[int]


class PodColumns(_Sent, frozen=True, kw_only=True):
    """`PodRow` by column."""

    key: list[str]
    node: list[int]
    place: list[int]
    priority: list[int]
    owner: list[int]
    requests: list[int]
    reason: list[int]
    rejectors: list[int]
    terminating: list[bool]
    created: list[int]


class Span(_Sent, frozen=True, kw_only=True):
    """How far back `?at=` reaches, milliseconds since 1970."""

    begin: int
    end: int


class State(_Sent, frozen=True, kw_only=True):
    """Everything at one moment. The stream goes on after `seq`."""

    seq: int
    mode: Mode
    actions: tuple[str, ...]
    clock: ClockState
    span: Span
    scheduler: SchedulerState
    places: tuple[str, ...] = PLACES
    words: Words
    nodes: NodeColumns
    pods: PodColumns
    queue: QueueState
    series: tuple[SeriesPoint, ...]
    plugin_times: tuple[PluginTime, ...]
    attempts: tuple[AttemptRow, ...]
    counts: Counts


class NodeChanges(_Sent, frozen=True, kw_only=True):
    set: tuple[NodeRow, ...] = ()
    gone: tuple[int, ...] = ()


class PodChanges(_Sent, frozen=True, kw_only=True):
    set: tuple[PodRow, ...] = ()
    gone: tuple[str, ...] = ()


class Batch(_Sent, frozen=True, kw_only=True, omit_defaults=True):
    """All changes since the batch before. What has not changed is left out.

    plugin_times   totals, of those that have changed
    """

    seq: int
    clock: ClockState
    words: Words | None = None
    nodes: NodeChanges | None = None
    pods: PodChanges | None = None
    queue: QueueState | None = None
    attempts: tuple[AttemptRow, ...] = ()
    series: tuple[SeriesPoint, ...] = ()
    plugin_times: tuple[PluginTime, ...] = ()
    leader: Leader | None = None
    counts: Counts | None = None
