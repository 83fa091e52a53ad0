"""What a plugin declares about reuse: which of its answers for one pod hold for the next pod.

A verdict or a raw score may be kept for all pods that are equal in what the plugin reads of them,
and computed again only for nodes that changed. A plugin that allows it declares one value:

    reuse = Reuse(filter=Reads.NODE, score=Reads.PODS, pod=PodReads.SPEC)

Without a declaration a plugin is asked in every cycle, which is always right.
Not here: the reuse itself (`engine.equivalence`, `plugins.default_preemption`).
"""

from collections.abc import Callable, Hashable
from enum import IntEnum
from typing import Final, NamedTuple

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.framework.cycle_state import CycleState
from kubestow.index.nodes import Nodes

FinalScores = Callable[[CycleState, PodInfo, Nodes], IntArray | None]


class Reads(IntEnum):
    """How much of a node an answer about it depends on; it never depends on other nodes."""

    NODE = 0  # the Node object alone
    NUMBERS = 1  # also how many pods are on the node and what they request
    PODS = 2  # also anything else of the pods on it


class PodReads(IntEnum):
    """How much of a pod an answer depends on; never on its name, its claims or its priority."""

    REQUESTS = 0  # nothing but what its containers request of each resource
    SPEC = 1  # the spec less resources, pod affinity and spread constraints
    AMOUNTS = 2  # also the resources, names and amounts
    ALL = 3  # also labels, namespace, owner, and the rest of the spec


# Whether something holds in one attempt.
Condition = Callable[[CycleState, PodInfo], bool]


class RowCodes(NamedTuple):
    """The codes of a filter in one attempt, node by node.

    basis     where two attempts have equal ones, all nodes have the same codes in both but for
              those that changed in between
    code_of   the code of the node in that row
    """

    basis: Hashable
    code_of: Callable[[int], int]


class Reuse(NamedTuple):
    """A plugin's declaration.

    filter            what of the node a verdict reads; None: verdicts are not reused
    score             the same for the raw score
    pod               what of the pod both read
    concerns          pods that the plugin has to be asked about, checked for each pod. All others
                      it leaves alone: they skip its Filter and its Score
    concerns_filter   of these, the pods whose PreFilter does not skip the Filter; None: all
    concerns_score    of these, the pods whose PreScore does not skip the Score; None: all
    unless            pods whose answers are not reused: they depend on more than that and the node,
                      such as claims. It reads no more than AMOUNTS, and its result is kept for pods
                      that are equal in these until `version` changes
    version           differs from its last value whenever `unless` may answer differently; called
                      in every cycle
    ignores_pods      attempts in which the filter reads no pods although `filter` allows it
    passes            attempts in which every node of the snapshot passes the filter, as far as can
                      be said without looking at single nodes; asked after PreFilter. The filter is
                      then not called
    scores_zero       attempts in which the normalised score of every node is 0. The plugin is then
                      not called to score
    row_codes         the codes that the filter would give, asked after PreFilter, where what they
                      depend on is known for all nodes at once; None where it is not
    final_scores      what PreScore, Score and the normalisation come to, in one call; None where
                      PreScore skips the Score
    per_node          the work is done node by node, so nodes that an earlier filter rejected are
                      left out
    """

    filter: Reads | None = None
    score: Reads | None = None
    pod: PodReads = PodReads.ALL
    concerns: Callable[[PodInfo], bool] | None = None
    concerns_filter: Callable[[PodInfo], bool] | None = None
    concerns_score: Callable[[PodInfo], bool] | None = None
    unless: Callable[[PodInfo], bool] | None = None
    version: Callable[[], Hashable] | None = None
    ignores_pods: Condition | None = None
    passes: Condition | None = None
    scores_zero: Condition | None = None
    row_codes: Callable[[CycleState, PodInfo], RowCodes | None] | None = None
    final_scores: FinalScores | None = None
    per_node: bool = False


NO_REUSE: Final = Reuse()


def reuse_of(plugin: object) -> Reuse:
    """The plugin's declaration; nothing is reused without one."""
    return getattr(plugin, "reuse", NO_REUSE)
