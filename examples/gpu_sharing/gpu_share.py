"""GpuShare: pods share GPUs; finds the nodes with enough left, and picks the GPUs of the pod.

PreFilter   refuses a pod whose annotations are wrong
Filter      the model, and enough GPUs with enough left on each
Reserve     picks the GPUs: the tightest fit, unless a plugin of the profile has `choose_gpu`
PreBind     writes them into the annotation of the pod
"""

from functools import cached_property
from typing import ClassVar, Final, Protocol, runtime_checkable

import numpy as np

from gpu_sharing.free_gpus import (
    GpuChoices,
    free_gpus,
    gpu_counts,
    model_allowed,
    tightest,
)
from gpu_sharing.requests import (
    GPU_INDEX,
    GpuRequest,
    gpu_indices,
    gpu_request,
    index_text,
    request_fault,
)
from kubestow.plugin import (
    Action,
    CycleState,
    Handle,
    Hint,
    IntArray,
    Nodes,
    Pod,
    PodInfo,
    PreFilterResult,
    PreFlight,
    Registrations,
    Resource,
    Status,
    nodes_of,
    on,
)

_WRONG_MODEL: Final = 1
_TOO_LITTLE: Final = 2
_TEXTS: Final = {
    _WRONG_MODEL: "node(s) had no GPU of the requested model",
    _TOO_LITTLE: "node(s) had too few GPUs with enough left",
}


@runtime_checkable
class ChoosesGpu(Protocol):
    """A score plugin that decides which GPU of the chosen node a sharing pod gets."""

    def choose_gpu(self, pod: PodInfo, request: GpuRequest, node: Nodes) -> int: ...


class GpuShare:
    name: ClassVar[str] = "GpuShare"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        self._handle = handle
        self._choices = handle.snapshot.derived(GpuChoices)
        handle.objects.pods.subscribe(self._after_change)

    # --- waiting pods ---

    def events(self) -> Registrations:
        node_changes = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_LABEL
        return [
            on(Resource.POD, Action.DELETE, self._after_deletion),
            on(Resource.NODE, node_changes),
        ]

    @staticmethod
    def _after_deletion(pod: Pod, old: Pod, new: None) -> Hint:
        return Hint.QUEUE if gpu_request(old).count else Hint.SKIP

    # --- nodes ---

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
        fault = request_fault(pod.pod)
        if fault:
            return Status.unresolvable(fault)
        return None if gpu_request(pod.pod).count else Status.skip()

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray:
        request = gpu_request(pod.pod)
        fitting = np.count_nonzero(free_gpus(nodes) >= request.milli, axis=0)
        codes = np.where(fitting < request.count, _TOO_LITTLE, 0)
        if request.models:
            codes[~model_allowed(nodes, request.models)] = _WRONG_MODEL
        return codes

    def filter_status(self, state: CycleState, code: int) -> Status:
        # Evicting pods helps against the one, and not against the other.
        make = Status.unresolvable if code == _WRONG_MODEL else Status.unschedulable
        return make(_TEXTS[code])

    # --- GPUs ---

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        request = gpu_request(pod.pod)
        if not request.count:
            return None
        row = self._handle.snapshot.row_of(node_name)
        if row is None:
            return Status.unschedulable("the node was deleted")
        # The pod is on its node already: until its GPUs are known it takes none.
        self._choices.put(pod.uid, ())
        indices = self._choose(pod, request, nodes_of(self._handle.snapshot, np.array([row])))
        if not indices:
            return Status.unschedulable(_TEXTS[_TOO_LITTLE])
        self._choices.put(pod.uid, indices)
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self._choices.drop(pod.uid)

    def reserved(self, uid: str) -> tuple[int, ...]:
        """The GPUs of a pod that was reserved and not seen with its annotation yet."""
        return self._choices.reserved(uid)

    @cached_property
    def _chooser(self) -> ChoosesGpu | None:
        # Found at first use: the other plugins of the profile are made after this one.
        plugins = self._handle.profile.plugins.values()
        return next((plugin for plugin in plugins if isinstance(plugin, ChoosesGpu)), None)

    def _choose(self, pod: PodInfo, request: GpuRequest, node: Nodes) -> tuple[int, ...]:
        if request.is_share and self._chooser is not None:
            return (self._chooser.choose_gpu(pod, request, node),)
        count = int(gpu_counts(node)[0])
        return tightest(free_gpus(node)[:count, 0].tolist(), request)

    # --- binding ---

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> PreFlight:
        has_gpus = gpu_request(pod.pod).count > 0
        return PreFlight(None if has_gpus else Status.skip(), allow_parallel=True)

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        indices = self._choices.reserved(pod.uid)
        patch = {"metadata": {"annotations": {GPU_INDEX: index_text(indices)}}}
        await self._handle.client.patch(Pod, pod.namespace, pod.name, patch)
        return None

    def _after_change(self, old: Pod | None, new: Pod | None) -> None:
        """A choice is needed until the pod is gone, or is seen on its node with its annotation."""
        if new is None:
            assert old is not None
            self._choices.drop(old.metadata.uid)
        elif new.spec.node_name and gpu_indices(new):
            self._choices.drop(new.metadata.uid)
