"""The selector of the services and the controller of a pod, for default constraints (spec 01 §14).

Which services select a pod is found by the pod's own labels, so that it costs the same for pods
that share no label with any other.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from kubestow.api.labels import Selector, selector_from_map
from kubestow.api.meta import ApiObject, OwnerReference
from kubestow.api.owners import controller_of, default_selector
from kubestow.api.pod import Pod
from kubestow.api.workload import Service
from kubestow.cache.objects import ClusterObjects

# The services of this many namespaces, and this many selectors of one, are kept; beyond, all go.
NAMESPACES_MAX: Final = 4096
SELECTORS_MAX: Final = 1024

_EMPTY: Final = selector_from_map({})
_Label = tuple[str, str]


class NamespaceServices:
    """The services of one namespace by a label that each of them requires."""

    def __init__(self, listed: tuple[Service, ...]) -> None:
        self.listed: Final = listed
        self._for_all: list[int] = []
        # By the first label: the services, and the labels that each requires.
        self._by_label: dict[_Label, list[tuple[int, AbstractSet[_Label]]]] = {}
        for number, service in enumerate(listed):
            selector = service.spec.selector
            if selector:
                labels = selector.items()
                self._by_label.setdefault(next(iter(labels)), []).append((number, labels))
            elif selector is not None:
                self._for_all.append(number)
        # A new version of an owner is a new object; it is kept here, so its id stays its own.
        self._selectors: dict[tuple[int, ...], tuple[ApiObject | None, Selector]] = {}

    def selecting(self, labels: Mapping[str, str]) -> list[int]:
        """The numbers of the services that select pods with these labels."""
        by_label = self._by_label
        if not by_label:
            return self._for_all
        return [
            *self._for_all,
            *(
                number
                for label in labels.items()
                for number, required in by_label.get(label, ())
                if len(required) == 1 or required <= labels.items()
            ),
        ]

    def kept(self, key: tuple[int, ...]) -> Selector | None:
        kept = self._selectors.get(key)
        return None if kept is None else kept[1]

    def keep(self, key: tuple[int, ...], owner: ApiObject | None, selector: Selector) -> None:
        if len(self._selectors) >= SELECTORS_MAX:
            self._selectors.clear()
        self._selectors[key] = owner, selector


class DefaultSelectors:
    """Default selectors of pods, as the services and the pod's owner are now."""

    def __init__(self, objects: ClusterObjects) -> None:
        self._objects = objects
        self._namespaces: dict[str, NamespaceServices] = {}
        # Of the last pod, which is asked about several times in an attempt.
        self._last: tuple[Pod, tuple[Service, ...], ApiObject | None, Selector] | None = None

    def of(self, pod: Pod) -> Selector:
        """Empty (`is_empty`) if default constraints do not apply to the pod."""
        namespace = pod.metadata.namespace
        controller = controller_of(pod) if pod.metadata.owner_references else None
        owner = None if controller is None else self._owner(namespace, controller)
        listed = self._objects.services.list_namespace(namespace)
        if owner is None and not listed:
            return _EMPTY
        last = self._last
        if last is None or last[0] is not pod or last[1] is not listed or last[2] is not owner:
            selector = self._selector(pod, owner, self._services(namespace, listed))
            last = self._last = pod, listed, owner, selector
        return last[3]

    def _selector(self, pod: Pod, owner: ApiObject | None, services: NamespaceServices) -> Selector:
        selecting = services.selecting(pod.metadata.labels)
        if owner is None and not selecting:
            return _EMPTY
        key = id(owner), *selecting
        selector = services.kept(key)
        if selector is None:
            selector = self._look_up(pod, [services.listed[number] for number in selecting])
            services.keep(key, owner, selector)
        return selector

    def _services(self, namespace: str, listed: tuple[Service, ...]) -> NamespaceServices:
        services = self._namespaces.get(namespace)
        # The store makes another tuple when a service of the namespace changes.
        if services is None or services.listed is not listed:
            if len(self._namespaces) >= NAMESPACES_MAX:
                self._namespaces.clear()
            services = self._namespaces[namespace] = NamespaceServices(listed)
        return services

    def _owner(self, namespace: str, controller: OwnerReference) -> ApiObject | None:
        objects = self._objects
        # With the version, as `default_selector` does: what is kept under an owner is for all of
        # its pods.
        match controller.api_version, controller.kind:
            case "apps/v1", "ReplicaSet":
                return objects.replica_sets.get(namespace, controller.name)
            case "apps/v1", "StatefulSet":
                return objects.stateful_sets.get(namespace, controller.name)
            case "v1", "ReplicationController":
                return objects.replication_controllers.get(namespace, controller.name)
            case _:
                return None

    def _look_up(self, pod: Pod, services: Sequence[Service]) -> Selector:
        objects = self._objects
        return default_selector(
            pod,
            services=lambda _: services,
            replication_controller=objects.replication_controllers.get,
            replica_set=objects.replica_sets.get,
            stateful_set=objects.stateful_sets.get,
        )
