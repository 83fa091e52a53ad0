"""Controllers and services of a pod, and the selector that both imply.

The default selector is used where a pod has no topology spread constraints of its own
(spec 01 §14). Lookups are arguments, so this module does not depend on where objects are kept.
"""

from collections.abc import Callable, Iterable, Mapping

from kubestow.api.labels import Selector, SelectorError, parse_label_selector, selector_from_map
from kubestow.api.meta import ApiObject, LabelSelector, OwnerReference
from kubestow.api.pod import Pod
from kubestow.api.workload import ReplicaSet, ReplicationController, Service, StatefulSet


def controller_of(owned: ApiObject) -> OwnerReference | None:
    """The first owner with `controller: true`."""
    for owner in owned.metadata.owner_references:
        if owner.controller:
            return owner
    return None


def services_of(pod: Pod, services: Iterable[Service]) -> list[Service]:
    """The services of the pod's namespace that send traffic to it.

    A service without selector serves no pod, one with an empty selector serves all.
    """
    labels = pod.metadata.labels
    return [service for service in services if _selects(service.spec.selector, labels)]


def default_selector(
    pod: Pod,
    *,
    services: Callable[[str], Iterable[Service]],
    replication_controller: Callable[[str, str], ReplicationController | None],
    replica_set: Callable[[str, str], ReplicaSet | None],
    stateful_set: Callable[[str, str], StatefulSet | None],
) -> Selector:
    """The selector that the pod's services and its controller share.

    `services` lists a namespace; the others look one object up by namespace and name. An empty
    result (`is_empty`) means that default constraints do not apply to the pod at all.
    """
    namespace = pod.metadata.namespace
    labels: dict[str, str] = {}
    for service in services_of(pod, services(namespace)):
        labels |= service.spec.selector or {}
    controller = controller_of(pod)
    if controller is None:
        return selector_from_map(labels)
    # The owner is found by name; neither its UID nor the pod's labels are checked against it.
    match controller.api_version, controller.kind:
        case "v1", "ReplicationController":
            owner = replication_controller(namespace, controller.name)
            if owner is not None:
                labels |= owner.spec.selector
        case "apps/v1", "ReplicaSet":
            owner = replica_set(namespace, controller.name)
            if owner is not None:
                return _narrowed(selector_from_map(labels), owner.spec.selector)
        case "apps/v1", "StatefulSet":
            owner = stateful_set(namespace, controller.name)
            if owner is not None:
                return _narrowed(selector_from_map(labels), owner.spec.selector)
        case _:
            pass
    return selector_from_map(labels)


def _selects(selector: Mapping[str, str] | None, labels: Mapping[str, str]) -> bool:
    # As sets: a namespace may have hundreds of services with thousands of labels each.
    return selector is not None and selector.items() <= labels.items()


def _narrowed(selector: Selector, owner: LabelSelector | None) -> Selector:
    """The selector AND the owner's; a missing or invalid one changes nothing."""
    try:
        return selector.narrowed(parse_label_selector(owner).requirements)
    except SelectorError:
        return selector
