"""NodeResourcesFit of v1.37: other hints for pods, and deferred resizes (spec 12 §3.3, §11)."""

from kubestow.api.meta import ResourceList
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.resources import Resources
from kubestow.arrays import IntArray
from kubestow.config.plugin_args import NodeResourcesFitArgs
from kubestow.editions.v1_37.api.deferred import DEFERRED_RESIZES, is_deferred
from kubestow.editions.v1_37.api.requests import footprint
from kubestow.editions.v1_37.plugins.resize_request import ResizeRequest
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.reuse import ASKED, Basis, Reuse, VersionedBasis
from kubestow.index.nodes import Nodes
from kubestow.plugins.node_resources_fit import NodeResourcesFit
from kubestow.plugins.node_resources_fit.hints import FitHints
from kubestow.plugins.node_resources_fit.shortage import FitRequest, shortages


class FitHintsV137(FitHints):
    def registrations(self) -> Registrations:
        return [
            on(Resource.ASSIGNED_POD, Action.DELETE, self.for_deleted_pod),
            on(Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN, self.for_resized_pod),
            on(Resource.TARGET_POD, Action.UPDATE_POD_SCALE_DOWN),
            *(
                registration
                for registration in super().registrations()
                if registration.event.resource != Resource.POD
            ),
        ]

    def for_deleted_pod(self, pod: Pod, old: Pod, new: Pod | None) -> Hint:
        is_placed = bool(old.spec.node_name or old.status.nominated_node_name)
        return Hint.QUEUE if is_placed else Hint.SKIP

    def for_resized_pod(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        return Hint.QUEUE if self._frees_what_is_needed(pod, old, new) else Hint.SKIP

    def _total(self, pod: Pod) -> ResourceList:
        return footprint(
            pod,
            use_pod_level=self._use_pod_level,
            use_pod_level_status=self._use_pod_level_status,
        )


class HintsWithResizes(FitHintsV137):
    """Only what happens on its own node helps a deferred resize."""

    def registrations(self) -> Registrations:
        return [
            *super().registrations(),
            on(Resource.TARGET_POD, Action.UPDATE_POD_SCALE_UP),
            on(Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_UP, self.for_grown_pod),
        ]

    def for_deleted_pod(self, pod: Pod, old: Pod, new: Pod | None) -> Hint:
        if _is_elsewhere(pod, old.spec.node_name):
            return Hint.SKIP
        return super().for_deleted_pod(pod, old, new)

    def for_resized_pod(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        if _is_elsewhere(pod, new.spec.node_name):
            return Hint.SKIP
        return super().for_resized_pod(pod, old, new)

    def for_grown_pod(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        is_own = is_deferred(pod) and not _is_elsewhere(pod, new.spec.node_name)
        return Hint.QUEUE if is_own else Hint.SKIP

    def for_node(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        if _is_elsewhere(pod, new.metadata.name):
            return Hint.SKIP
        return super().for_node(pod, old, new)


class NodeResourcesFitV137(NodeResourcesFit):
    hints_type = FitHintsV137

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        gates = handle.feature_gates
        self._has_resizes = gates.enabled(DEFERRED_RESIZES)
        # With deferred resizes there is no second form of the rule.
        self.answers_as: type = type(self) if self._has_resizes else NodeResourcesFit
        if self._has_resizes:
            self._hints = HintsWithResizes(gates, self._device_classes)
            self.reuse = _except_for_resizes(self.reuse)

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        request = self.fit_request(state)
        codes = shortages(request, nodes)
        if codes is not None and isinstance(request, ResizeRequest):
            return request.with_unresolvable(codes, nodes)
        return codes

    def _fit_request(self, pod: PodInfo) -> FitRequest:
        request = super()._fit_request(pod)
        if not self._has_resizes or not is_deferred(pod.pod):
            return request
        return ResizeRequest(request, self._counted(pod))

    def _counted(self, pod: PodInfo) -> Resources:
        """What the node of the pod counts for it already."""
        row = self._snapshot.row_of(pod.pod.spec.node_name)
        for known in () if row is None else self._snapshot.node_infos[row].pods:
            if known.uid == pod.uid:
                return known.accounted.requested
        return Resources()


def _is_elsewhere(pod: Pod, node_name: str) -> bool:
    """Whether the pod is a deferred resize on another node."""
    return is_deferred(pod) and pod.spec.node_name != node_name


def _except_for_resizes(reuse: Reuse) -> Reuse:
    """A deferred resize needs another amount than its spec requests."""
    kept = reuse.basis

    def asked_for_resizes(pod: PodInfo) -> object:
        if is_deferred(pod.pod):
            return ASKED
        return None if kept is None else kept(pod)

    basis: Basis = asked_for_resizes
    if isinstance(kept, VersionedBasis):
        basis = VersionedBasis(asked_for_resizes, kept.version)
    return reuse._replace(basis=basis)
