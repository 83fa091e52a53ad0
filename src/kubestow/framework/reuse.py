"""What a plugin declares about reuse: which of its answers for one pod hold for the next pod.

A verdict or a raw score may be kept for all pods that are equal in what the plugin reads of them,
and computed again only for nodes that changed. A plugin that allows it declares one value:

    reuse = Reuse(filter=Reads.NODE, score=Reads.PODS, pod=PodReads.SPEC)

Without a declaration a plugin is asked in every cycle, which is always right. How a plugin may be
asked instead of by Filter and Score is in `FastPlugin`.
Not here: the reuse itself (`engine.equivalence`, `plugins.default_preemption`).
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.cache.change_log import Depends
from kubestow.framework.cycle_state import CycleState
from kubestow.index.nodes import Nodes

# What of a pod answers depend on.
Basis = Callable[[PodInfo], Hashable]
AskRule = Callable[[CycleState, PodInfo], "Rule"]
FinalScores = Callable[[CycleState, PodInfo, Nodes], IntArray | int | None]
AskRowAnswers = Callable[[PodInfo], "RowAnswers | None"]


class VersionedBasis(NamedTuple):
    """A basis that reads more than the pod: it may answer differently whenever `version` gives
    another value, which is called in every cycle."""

    basis: Basis
    version: Callable[[], Hashable]

    def __call__(self, pod: PodInfo) -> Hashable:
        return self.basis(pod)


class Reads(IntEnum):
    """How much of a node an answer about it depends on; it never depends on other nodes."""

    NODE = 0  # the Node object alone
    NUMBERS = 1  # also how many pods are on the node and what they request
    PODS = 2  # also anything else of the pods on it


def depends_of(reads: Iterable[Reads | None]) -> Depends:
    """What has to be followed for answers that read this of a node and of its pods."""
    return Depends.PODS if Reads.PODS in reads else Depends.COUNTS


class PodReads(IntEnum):
    """How much of a pod an answer depends on; never on its name, its claims or its priority."""

    REQUESTS = 0  # nothing but what its containers request of each resource
    SPEC = 1  # the spec less resources, pod affinity and spread constraints
    AMOUNTS = 2  # also the resources, names and amounts
    ALL = 3  # also labels, namespace, owner, and the rest of the spec
    CLUSTER = 4  # also other pods and objects: nothing is kept, and the basis is a Concern


class Concern(IntEnum):
    """At which points a plugin has something to say about a pod; two bits."""

    NOTHING = 0
    FILTER = 1
    SCORE = 2
    BOTH = 3


class RowCodes(NamedTuple):
    """The codes of a filter in one attempt, node by node.

    basis     where two attempts have equal ones, all nodes have the same codes in both but for
              those that changed in between
    code_of   the code of the node in that row
    """

    basis: Hashable
    code_of: Callable[[int], int]


class Needs(NamedTuple):
    """What a node must have left for a pod: one place for it, and this of the resources.

    amounts   of the basic resources, in their order; for None also less than nothing is enough
    scalars   name and amount of others
    """

    amounts: Sequence[int | None]
    scalars: Sequence[tuple[str, int]]


class RowAnswers:
    """What a plugin answers on all rows, where it keeps that itself. Compared by identity.

    codes    int64[row], those of its filter; None if every node passes
    scores   int64[row], its final scores; None if it has none

    The arrays are changed in place, before the next attempt asks for the answers. Where two
    attempts get the same object, its answers differ only on rows that the snapshot has noted as
    changed in between: what nodes count of their pods, or the Node objects.
    """

    __slots__ = ("codes", "scores")

    def __init__(self, codes: IntArray | None, scores: IntArray | None) -> None:
        self.codes = codes
        self.scores = scores


class Rule:
    """What a filter can say of one attempt without looking at single nodes. This one says nothing.

    It is asked for after PreFilter, and holds until the end of the attempt.
    """

    __slots__ = ()

    def passes_all(self) -> bool:
        """Whether every node of the snapshot is known to pass. The filter is then not called."""
        return False

    def ignores_pods(self) -> bool:
        """Whether the filter reads no pods in this attempt, whatever it declares."""
        return False

    def row_codes(self) -> RowCodes | None:
        """The codes, where what they depend on is known for all nodes at once."""
        return None

    def needs(self) -> Needs | None:
        """The filter passes exactly the nodes that have this left, also with other pods on them."""
        return None


class Reuse(NamedTuple):
    """A plugin's declaration.

    filter   what of the node a verdict reads; None: verdicts are not reused
    score    the same for the raw score
    pod      what of the pod both read
    basis    what of that the answers depend on: pods with equal ones share them. ASKED for pods
             whose answers are not reused, because they depend on more than the pod and the node,
             such as claims. It reads no more than SPEC and the names of resources, and its result
             is kept for pods that are equal in these; that of a VersionedBasis until it may differ.
             With PodReads.CLUSTER it is called for each pod, and says as a Concern at which points
             the plugin has to be asked
    """

    filter: Reads | None = None
    score: Reads | None = None
    pod: PodReads = PodReads.ALL
    basis: Basis | None = None


class FastPlugin(Protocol):
    """Methods that a plugin may have beside Filter and Score; those it has say the same as these.

    Each may also be an attribute that is None: then the plugin has it not.
    """

    def filter_rule(self, state: CycleState, pod: PodInfo) -> Rule:
        """What is known of the filter in an attempt, after PreFilter."""
        ...

    def final_scores(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int | None:
        """What PreScore, Score and the normalisation come to, in one call: one number if it is the
        same for all nodes, None where PreScore skips the Score."""
        ...

    def row_answers(self, pod: PodInfo) -> RowAnswers | None:
        """With PodReads.CLUSTER: what the plugin answers on all rows, up to date; None if it has to
        be asked. Called for pods that concern it, after `basis`; the other methods may then be left
        out."""
        ...


NO_REUSE: Final = Reuse()
NOTHING_KNOWN: Final = Rule()

# The basis of pods whose answers are not reused.
ASKED: Final = object()


def reuse_of(plugin: object) -> Reuse:
    """The plugin's declaration; nothing is reused without one."""
    return getattr(plugin, "reuse", NO_REUSE)
