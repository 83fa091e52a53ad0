"""Which events may help a pod that did not fit (spec 05 §8.7, spec 02 §7.3)."""

from kubestow.api.device import DeviceClass
from kubestow.api.meta import ResourceList
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.requests import filter_request, pod_requests
from kubestow.api.resources import DEVICE_CLASS_PREFIX, Resources, amount_of
from kubestow.config.feature_gates import FeatureGates
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.index.devices.classes import DeviceClassMap
from kubestow.plugins.node_resources_fit.shortage import FitRequest, fits_empty


class FitHints:
    """`device_classes` None means that devices serve no extended resources."""

    def __init__(self, gates: FeatureGates, device_classes: DeviceClassMap | None) -> None:
        self._use_pod_level = gates.enabled("PodLevelResources")
        self._use_pod_level_status = gates.enabled("InPlacePodLevelResourcesVerticalScaling")
        self._device_classes = device_classes

    def registrations(self) -> Registrations:
        events = [
            on(Resource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN, self.for_pod),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, self.for_node),
        ]
        if self._device_classes is not None:
            events.append(
                on(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE, self.for_device_class)
            )
        return events

    def for_pod(self, pod: Pod, old: Pod, new: Pod | None) -> Hint:
        """A pod was deleted or requests less."""
        if new is None:
            is_placed = bool(old.spec.node_name or old.status.nominated_node_name)
            return Hint.QUEUE if is_placed else Hint.SKIP
        if new.metadata.uid == pod.metadata.uid:
            return Hint.QUEUE
        if not new.spec.node_name:
            return Hint.SKIP
        return Hint.QUEUE if self._frees_what_is_needed(pod, old, new) else Hint.SKIP

    def for_node(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        """A node was added, or its allocatable resources changed."""
        request = FitRequest.of(
            filter_request(pod, use_pod_level=self._use_pod_level),
            device_classes=self._device_classes,
        )
        after = Resources.from_list(new.status.allocatable)
        if not fits_empty(request, after):
            return Hint.SKIP
        if old is None:
            return Hint.QUEUE
        before = Resources.from_list(old.status.allocatable)
        return Hint.QUEUE if _offers_more(request, before, after) else Hint.SKIP

    def for_device_class(self, pod: Pod, old: DeviceClass | None, new: DeviceClass) -> Hint:
        """A class was added, or serves another resource."""
        resource = new.spec.extended_resource_name
        if old is not None and (old.spec.extended_resource_name or "") == (resource or ""):
            return Hint.SKIP
        requested = filter_request(pod, use_pod_level=self._use_pod_level).scalar
        by_name = old is None and DEVICE_CLASS_PREFIX + new.metadata.name in requested
        return Hint.QUEUE if by_name or resource in requested else Hint.SKIP

    def _frees_what_is_needed(self, pod: Pod, old: Pod, new: Pod) -> bool:
        before, after = Resources(), Resources()
        before.set_max(self._total(old))
        after.set_max(self._total(new))
        return any(
            amount_of(name, before) > amount_of(name, after)
            for name, quantity in self._total(pod).items()
            if quantity.nano
        )

    def _total(self, pod: Pod) -> ResourceList:
        return pod_requests(
            pod,
            use_status=True,
            use_pod_level=self._use_pod_level,
            use_pod_level_status=self._use_pod_level_status,
        )


def _offers_more(request: FitRequest, before: Resources, after: Resources) -> bool:
    if after.allowed_pods > before.allowed_pods:
        return True
    return any(
        amount_of(demand.name, after) > amount_of(demand.name, before)
        or (demand.by_devices and amount_of(demand.name, after) <= 0)
        for demand in request.demands
    )
