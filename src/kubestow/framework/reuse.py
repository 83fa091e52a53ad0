"""What a plugin declares about reuse: which of its answers for one pod hold for the next pod.

A verdict or a raw score may be kept for all pods that are equal in what the plugin reads of them,
and computed again only for nodes that changed. A plugin that allows it declares one value:

    reuse = Reuse(filter=Reads.NODE, score=Reads.PODS, pod=PodReads.SPEC)

Without a declaration a plugin is asked in every cycle, which is always right.
Not here: the reuse itself (`engine.equivalence`, `plugins.default_preemption`).
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.cache.change_log import Depends
from kubestow.framework.cycle_state import CycleState
from kubestow.index.nodes import Nodes

# What of a pod answers depend on.
Basis = Callable[[PodInfo], Hashable]
FinalScores = Callable[[CycleState, PodInfo, Nodes], IntArray | int | None]


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

    codes      int64[row], those of its filter; None if every node passes
    scores     gives int64[row], its final scores; None if it has none
    score_of   gives the score of one row

    Where two attempts get the same object, its answers differ only on rows that the snapshot has
    noted as changed in between: what nodes count of their pods, or the Node objects.
    """

    __slots__ = ("codes", "score_of", "scores")

    def __init__(
        self,
        codes: IntArray | None,
        scores: Callable[[], IntArray] | None,
        score_of: Callable[[int], int] | None,
    ) -> None:
        self.codes = codes
        self.scores = scores
        self.score_of = score_of


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

    filter         what of the node a verdict reads; None: verdicts are not reused
    score          the same for the raw score
    pod            what of the pod both read
    basis          what of that the answers depend on: pods with equal ones share them. ASKED for
                   pods whose answers are not reused, because they depend on more than the pod and
                   the node, such as claims. It reads no more than AMOUNTS, and its result is kept
                   for pods that are equal in these until `version` changes. With PodReads.CLUSTER
                   it is called for each pod, and says at which points the plugin has to be asked
    version        differs from its last value whenever `basis` may answer differently; called in
                   every cycle
    rule           what is known of the filter in an attempt, after PreFilter
    final_scores   what PreScore, Score and the normalisation come to, in one call: one number if it
                   is the same for all nodes, None where PreScore skips the Score
    row_answers    with PodReads.CLUSTER: what the plugin answers on all rows, up to date; None if
                   it has to be asked. Called for pods that concern it, after `basis`; PreFilter,
                   Filter, PreScore and Score may then be left out
    """

    filter: Reads | None = None
    score: Reads | None = None
    pod: PodReads = PodReads.ALL
    basis: Basis | None = None
    version: Callable[[], Hashable] | None = None
    rule: Callable[[CycleState, PodInfo], Rule] | None = None
    final_scores: FinalScores | None = None
    row_answers: Callable[[PodInfo], RowAnswers | None] | None = None


NO_REUSE: Final = Reuse()
NOTHING_KNOWN: Final = Rule()

# The basis of pods whose answers are not reused.
ASKED: Final = object()


def reuse_of(plugin: object) -> Reuse:
    """The plugin's declaration; nothing is reused without one."""
    return getattr(plugin, "reuse", NO_REUSE)
