"""The contract between the scheduler and its plugins: what a plugin may implement (spec 04 §2.2).

A plugin is any object with a `name` and some of the methods below; it is called at the extension
points whose methods it has. Filters and scores answer for many nodes at once:

    filter(state, pod, nodes) -> int64[len(nodes)]     0 passes, above 0 rejected, below 0 failed;
                                                       None when every node passes
    filter_status(state, code) -> Status               what such a number means
    score(state, pod, nodes)  -> int64[len(nodes)], or one int when all nodes score the same

A rule that is easier to write for one node is written as a `NodePlugin`. Where a method returns
`Status | None`, None means Success. A plugin that cannot do its work raises `PluginError`; any
other exception is treated alike, so that a faulty plugin fails one attempt only.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, runtime_checkable

from kubestow.api.group import Group, TreeNode
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray, NarrowArray
from kubestow.cache.trial import SnapshotTrial
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Registrations
from kubestow.framework.group_cycle import Assignments, GroupCycle, GroupPlacement
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes

if TYPE_CHECKING:
    from kubestow.framework.diagnosis import Diagnosis

MAX_NODE_SCORE = 100
MIN_NODE_SCORE = 0


class Plugin(Protocol):
    """What every plugin has: its name in configurations and messages."""

    name: ClassVar[str]


@runtime_checkable
class EventPlugin(Protocol):
    """Registers the cluster events that may help a pod this plugin rejected (spec 02 §7)."""

    def events(self) -> Registrations: ...


@runtime_checkable
class PreEnqueuePlugin(Protocol):
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Whether the pod may enter the active queue at all."""
        ...


@runtime_checkable
class SharedGatePlugin(Protocol):
    """A PreEnqueue plugin that refuses and admits pods in sets, such as the members of a gang.

    While a set is refused, events are not tried on each of its pods.
    """

    def gate_key(self, subject: object) -> Hashable | None:
        """The set of a pod, or the one that another object belongs to; None if there is none."""
        ...

    def is_open(self, key: Hashable) -> bool:
        """Whether the pods of the set may pass now."""
        ...


class QueueEntry(Protocol):
    """What a sort order may read: the pod and when it entered the queue."""

    pod_info: PodInfo
    timestamp_ns: int


@runtime_checkable
class QueueSortPlugin(Protocol):
    def less(self, first: QueueEntry, second: QueueEntry) -> bool:
        """Whether the first pod is tried before the second."""
        ...


class Restriction(NamedTuple):
    """PreFilter's answer that only these nodes have to be filtered."""

    node_names: frozenset[str]


# None: continue with all nodes. A Status other than Success rejects the pod, fails the attempt, or
# (Skip) leaves the plugin's Filter out of it.
PreFilterResult = Restriction | Status | None


@runtime_checkable
class PreFilterPlugin(Protocol):
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
        """Prepare for this pod; `nodes` are all nodes of the snapshot."""
        ...


@runtime_checkable
class PreFilterExtensions(Protocol):
    """Updates the state when pods are added to or removed from one node in a simulation."""

    def add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, row: int
    ) -> Status | None: ...

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, row: int
    ) -> Status | None: ...


@runtime_checkable
class FilterPlugin(Protocol):
    """If it has an attribute `per_node` that is true, its work is done node by node: nodes that an
    earlier filter rejected are left out."""

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> NarrowArray | None: ...

    def filter_status(self, state: CycleState, code: int) -> Status: ...


class PostFilterResult(NamedTuple):
    """A nomination, or "" to clear the pod's own, and the pods to evict from that node."""

    nominated_node_name: str
    victims: tuple[PodInfo, ...] = ()


@runtime_checkable
class PostFilterPlugin(Protocol):
    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: "Diagnosis"
    ) -> tuple[PostFilterResult | None, Status]:
        """Try to make the pod schedulable. No result keeps its nomination."""
        ...


@runtime_checkable
class RepeatedPostFilterPlugin(Protocol):
    """A PostFilter plugin that need not be called again for an equal pod, if nothing changed."""

    def post_filter_repeated(self, pod: PodInfo) -> bool:
        """Whether the answer that helped no pod of this shape holds for this one; notes it."""
        ...


@runtime_checkable
class PreScorePlugin(Protocol):
    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        """Prepare to score the feasible nodes. Skip leaves the plugin out of scoring."""
        ...


@runtime_checkable
class ScorePlugin(Protocol):
    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int: ...


@runtime_checkable
class NormalizePlugin(Protocol):
    def normalize(self, state: CycleState, pod: PodInfo, scores: IntArray) -> IntArray:
        """Bring the raw scores of all feasible nodes into 0..100."""
        ...


# What a plugin reads of a pod: values that are compared by `==`, by names of the author's choice.
Fragments = Mapping[str, object]


@runtime_checkable
class SignPlugin(Protocol):
    """Says what of the pod the answers of PreFilter, Filter, PreScore and Score depend on.

    Pods for which all plugins of a profile say the same may get the node of a list made for the
    pod before (spec 04 §15). If it has an attribute `signs_none` that is true, it refuses all pods.
    """

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        """None if the answers depend on more than can be said, such as other pods.

        Plugins that read the same name their fragment alike. Called when the pod enters the queue
        and after each change of a waiting pod.
        """
        ...


@runtime_checkable
class ReservePlugin(Protocol):
    """If it has an attribute `reserves_filtered` that is true, it reserves nothing for a pod that
    its own PreFilter left out (Skip), and need not be called for it."""

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None: ...

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None: ...


@runtime_checkable
class PermitPlugin(Protocol):
    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        """Success, a rejection, or Wait together with the timeout in seconds."""
        ...


class PreFlight(NamedTuple):
    """Whether PreBind has work to do (Skip: none), and whether it may run beside others."""

    status: Status | None
    allow_parallel: bool = False


@runtime_checkable
class PreBindPlugin(Protocol):
    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> PreFlight: ...

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None: ...


@runtime_checkable
class BindPlugin(Protocol):
    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None: ...


@runtime_checkable
class PostBindPlugin(Protocol):
    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None: ...


@runtime_checkable
class PlacementGeneratePlugin(Protocol):
    def generate_placements(
        self, cycle: GroupCycle, parent: GroupPlacement
    ) -> Sequence[GroupPlacement]:
        """The sets of nodes on which the group may be placed, in the order to try them."""
        ...


@runtime_checkable
class PlacementScorePlugin(Protocol):
    def score_placement(self, cycle: GroupCycle, assignments: Assignments) -> int: ...


@runtime_checkable
class NormalizePlacementsPlugin(Protocol):
    def normalize_placements(self, cycle: GroupCycle, scores: Sequence[int]) -> Sequence[int]:
        """Bring the scores of all placements that are possible into 0..100."""
        ...


class GroupTrial(NamedTuple):
    """A whole group that does not fit, for a preemption that serves all of its members.

    `trial` changes the snapshot; `fits` places the group on it as it is then and undoes that, and
    returns None if it fits.
    """

    group: Group
    pods: Sequence[PodInfo]
    trial: SnapshotTrial
    fits: Callable[[], Status | None]


@runtime_checkable
class GroupPostFilterPlugin(Protocol):
    def group_post_filter(self, group_trial: GroupTrial) -> Status:
        """Try to make the group schedulable."""
        ...


class TriedMember(NamedTuple):
    """A member of a group for which a node was searched; the diagnosis is None if one was found."""

    state: CycleState
    pod: PodInfo
    diagnosis: "Diagnosis | None"


class PlacedMember(NamedTuple):
    pod: PodInfo
    node_name: str


class UnplacedGroup(NamedTuple):
    """A group, or a tree of groups, that does not fit, for PodGroupPostFilter (spec 12 §15.5).

    node       the root; `group` has its rules if it is a group of pods
    pods       its members that wait
    tried      those for which a node was searched
    trial      changes the snapshot
    place      places the group on the snapshot as it is then, once, and undoes that: the members
               that were placed, or why it does not fit
    passes     whether placed members still fit on their nodes, beside what the snapshot has then
    """

    node: TreeNode
    pods: Sequence[PodInfo]
    tried: Sequence[TriedMember]
    trial: SnapshotTrial
    place: Callable[[], Sequence[PlacedMember] | Status]
    passes: Callable[[Sequence[PlacedMember]], bool]


# The nodes that members are nominated to, by UID.
GroupNominations = Mapping[str, str]


@runtime_checkable
class PodGroupPostFilterPlugin(Protocol):
    def pod_group_post_filter(self, group: UnplacedGroup) -> tuple[GroupNominations | None, Status]:
        """Try to make the group schedulable."""
        ...


@runtime_checkable
class PlacementFeasiblePlugin(Protocol):
    def placement_feasible(
        self, cycle: GroupCycle, scheduled_count: int, remaining_count: int
    ) -> Status | None:
        """Whether the group can be placed: Success, Wait if it still may be, or Unschedulable.

        Counted are members, or the parts of a group of groups; those remaining were not tried.
        """
        ...


class StatusCodes:
    """Numbers for statuses whose texts are not known beforehand.

    Filters with free-form messages (volumes, devices, plugins of users) keep one of these in the
    cycle state; equal statuses share a number, errors get negative ones. Where answers are reused
    a state is kept after its attempt, until there are many more statuses than nodes.
    """

    __slots__ = ("_codes", "_statuses")

    def __init__(self) -> None:
        self._codes: dict[Status, int] = {}
        self._statuses: dict[int, Status] = {}

    def __len__(self) -> int:
        return len(self._codes)

    def code_of(self, status: Status | None) -> int:
        if status is None or status.is_success:
            return 0
        code = self._codes.get(status)
        if code is None:
            number = len(self._codes) + 1
            code = number if status.is_rejected else -number
            self._codes[status] = code
            self._statuses[code] = status
        return code

    def status_of(self, code: int) -> Status:
        return self._statuses[code]
