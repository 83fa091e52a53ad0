"""Prefers nodes on which the pod makes the used shares of resources more equal (spec 05 §9).

The score compares how even the shares are with the pod and without it: 75 means no change, above
that they become more even, below less.
"""

from typing import ClassVar, Final

import numpy as np

from kubestow.api.meta import ResourceList
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.requests import balance_request
from kubestow.arrays import FloatArray, IntArray
from kubestow.config.plugin_args import NodeResourcesBalancedAllocationArgs
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import MAX_NODE_SCORE, Fragments
from kubestow.framework.reuse import Reads
from kubestow.framework.status import Status
from kubestow.index.devices import DeviceCounts, KnownDevices
from kubestow.index.nodes import Nodes
from kubestow.plugins._shared import bases
from kubestow.plugins._shared.basic_loads import BasicLoads
from kubestow.plugins._shared.scoring_resources import Loads, ScoredRequest, ScoringResources

_PRE_SCORE: Final = "PreScoreNodeResourcesBalancedAllocation"
HALF_SCORE: Final = MAX_NODE_SCORE // 2
# As arrays: Python's numbers are converted in each operation.
_TWO: Final = np.array(2.0)
_HALF: Final = np.array(float(HALF_SCORE))


class NodeResourcesBalancedAllocation:
    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    args_type: ClassVar[type[NodeResourcesBalancedAllocationArgs]] = (
        NodeResourcesBalancedAllocationArgs
    )

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, handle: Handle) -> None:
        gates = handle.feature_gates
        self._use_pod_level = gates.enabled("PodLevelResources")
        self._use_pod_level_status = gates.enabled("InPlacePodLevelResourcesVerticalScaling")
        serves_devices = gates.enabled("DRAExtendedResource")
        known = KnownDevices.of(handle.objects, gates) if serves_devices else None
        self._device_classes = None if known is None else known.class_map
        self.reuse = bases.unless_served_by_devices(self._device_classes, None, Reads.NUMBERS)
        self._resources = ScoringResources(
            args.resources,
            use_non_zero=False,
            devices=None if known is None else DeviceCounts(known),
        )

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        request = self._request(pod)
        if request is None:
            return Status.skip()
        state.write(_PRE_SCORE, request)
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int:
        scores = self.final_scores(state, pod, nodes)
        return 0 if scores is None else scores

    def final_scores(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int | None:
        amounts = self._resources.amounts_of(pod, self._view)
        if not any(amounts):
            return None
        if self._resources.are_basic:
            cpu, memory = amounts
            loads = BasicLoads.of(nodes, cpu, memory)
            if loads is not None:
                return _compared(*loads.evenness(nodes, cpu, memory))
        request = self._resources.counting(amounts)
        return balance_scores(self._resources.loads(nodes, request))

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return bases.signed_request(pod, self._device_classes, use_pod_level=self._use_pod_level)

    def scored_request(self, state: CycleState) -> ScoredRequest:
        """What PreScore stored."""
        return state.read(_PRE_SCORE)

    def loads_of(self, pod: PodInfo, nodes: Nodes) -> tuple[tuple[str, ...], Loads] | None:
        """The resources that a score is made of, and how much of each nodes have; for
        explanations. None if the pod requests none of them."""
        request = self._request(pod)
        return None if request is None else (request.names, self._resources.loads(nodes, request))

    def _request(self, pod: PodInfo) -> ScoredRequest | None:
        """None if the pod requests nothing of what counts."""
        amounts = self._resources.amounts_of(pod, self._view)
        return self._resources.counting(amounts) if any(amounts) else None

    def _view(self, pod: Pod) -> ResourceList:
        return balance_request(
            pod,
            use_pod_level=self._use_pod_level,
            use_pod_level_status=self._use_pod_level_status,
        )


def balance_scores(loads: Loads) -> IntArray | int:
    """int64[node] in 50..100: whether the pod makes the shares of the resources more even.

    A resource the node lacks is left out, so nodes are grouped by the resources they have.
    """
    if np.count_nonzero(loads.allocatable) == loads.allocatable.size:
        return _scores_of_group(loads)
    has = loads.allocatable != 0
    patterns, pattern_of = np.unique(has, axis=1, return_inverse=True)
    scores = np.empty(has.shape[1], np.int64)
    for number, pattern in enumerate(patterns.T.tolist()):
        positions = np.flatnonzero(pattern_of == number)
        scores[positions] = _scores_of_group(loads.at(pattern, positions))
    return scores


def _scores_of_group(loads: Loads) -> IntArray | int:
    """The scores of nodes that have all these resources."""
    allocatable, used, request, _ = loads
    if len(allocatable) < 2:
        return HALF_SCORE + HALF_SCORE // 2  # One share alone is always even.
    # The shares with the pod and those without it, together.
    shares: FloatArray = np.empty((2, *used.shape))
    shares[0] = used + request
    shares[1] = used
    # Converted once: dividing by integers converts them for each of the two.
    shares /= allocatable.astype(np.float64)
    if shares.size and shares.item(shares.argmax()) > 1.0:
        np.minimum(shares, 1.0, out=shares)
    return _compared(*_evenness(shares))


def _compared(after: IntArray, before: IntArray) -> IntArray:
    """The scores, from the evenness with the pod, which is overwritten, and without it."""
    # Never negative, so that a shift halves it: evenness is 50..100.
    after -= before
    after += 3 * HALF_SCORE
    after >>= 1
    return after


def _evenness(shares: FloatArray) -> IntArray:
    """int64[2, node] of float64[2, resource, node]: 100 minus the deviation in percent, truncated.

    Spec 05 §9: every operation in this order, because the last bit may change the result.
    """
    count = shares.shape[1]
    if count == 2:
        # The deviation is half of the distance. Here both it and what it is subtracted from are
        # twice as large, which changes no bit but the exponent, and the factor is half.
        distance = shares[:, 0] - shares[:, 1]
        even = np.subtract(_TWO, np.abs(distance, out=distance), out=distance)
        even *= _HALF
    else:
        apart = shares - (_running_sum(shares) / count)[:, np.newaxis]
        even = 1 - np.sqrt(_running_sum(apart * apart) / count)
        even *= float(MAX_NODE_SCORE)
    return even.astype(np.int64)


def _running_sum(values: FloatArray) -> FloatArray:
    # In order of resources; np.sum may add in another order.
    total = values[:, 0]
    for place in range(1, values.shape[1]):
        total = total + values[:, place]
    return total
