"""Requests of a pod that is being resized: its footprint (spec 12 §6).

v1.36 takes the maximum of spec, allocated and actual amounts for each container and adds these up;
here each of the three is added up, and the maximum is that of the sums. A pod whose status has no
amounts and does not say that the resize is infeasible counts as before (`api.requests`).
"""

from collections.abc import Callable

from kubestow.api.meta import ResourceList
from kubestow.api.pod import Container, ContainerStatus, Pod
from kubestow.api.requests import (
    AccountedRequest,
    accounted_request,
    add_requests,
    container_total,
    default_requests,
    is_infeasible,
    is_pod_level_active,
    is_pod_level_name,
    is_resize_infeasible,
    pod_requests,
    raise_to,
    request_value,
    with_defaults,
)
from kubestow.api.resources import CPU, MEMORY, Resources


def has_amounts(pod: Pod) -> bool:
    """Whether the status has amounts that may count, or says that those of the spec do not."""
    status = pod.status
    return bool(
        status.resources is not None
        or any(_has_amounts(each) for each in status.container_statuses)
        or any(_has_amounts(each) for each in status.init_container_statuses)
        or is_infeasible(status)
    )


def accounted_footprint(
    pod: Pod, *, use_pod_level: bool = True, use_pod_level_status: bool = True
) -> AccountedRequest:
    """What a pod adds to its node's counters (spec 01 §3.2, view A)."""
    if not has_amounts(pod):
        return accounted_request(
            pod, use_pod_level=use_pod_level, use_pod_level_status=use_pod_level_status
        )
    total = footprint(pod, use_pod_level=use_pod_level, use_pod_level_status=use_pod_level_status)
    is_override = use_pod_level and is_pod_level_active(pod)
    non_zero = footprint(
        pod,
        use_pod_level=use_pod_level,
        use_pod_level_status=use_pod_level_status,
        cpu_default=not is_override or CPU not in total,
        memory_default=not is_override or MEMORY not in total,
    )
    return AccountedRequest(
        requested=Resources.from_list(total),
        non_zero_cpu=request_value(CPU, non_zero),
        non_zero_memory=request_value(MEMORY, non_zero),
    )


def footprint(
    pod: Pod,
    *,
    use_pod_level: bool = True,
    use_pod_level_status: bool = True,
    cpu_default: bool = False,
    memory_default: bool = False,
) -> ResourceList:
    """The pod's requests with what its status says, as a fresh list (spec 01 §3.2, view D).

    The options are the gates PodLevelResources and InPlacePodLevelResourcesVerticalScaling, and
    stand-ins for containers that request nothing.
    """
    if not has_amounts(pod):
        return pod_requests(
            pod,
            use_status=True,
            use_pod_level=use_pod_level,
            use_pod_level_status=use_pod_level_status,
            cpu_default=cpu_default,
            memory_default=memory_default,
        )
    defaults = default_requests(cpu=cpu_default, memory=memory_default)
    total = _containers(pod, defaults, use_pod_level_status=use_pod_level_status)
    if use_pod_level and is_pod_level_active(pod):
        total |= _pod_level(pod, use_status=use_pod_level_status)
    if pod.spec.overhead is not None:
        add_requests(total, pod.spec.overhead)
    return total


def is_scaled_down(old: Pod, new: Pod) -> bool:
    """Whether the pod requests less of some resource."""
    return not _are_same(old, new) and _exceeds(footprint(old), footprint(new))


def is_scaled_up(old: Pod, new: Pod) -> bool:
    """Whether the pod requests more of some resource."""
    return not _are_same(old, new) and _exceeds(footprint(new), footprint(old))


def _are_same(old: Pod, new: Pod) -> bool:
    """Whether nothing that counts differs, as in most updates; comparing is faster than adding."""
    before, after = old.spec, new.spec
    is_same_spec = before is after or (
        before.containers == after.containers
        and before.init_containers == after.init_containers
        and before.overhead == after.overhead
        and before.resources == after.resources
    )
    return is_same_spec and not has_amounts(old) and not has_amounts(new)


def _exceeds(one: ResourceList, other: ResourceList) -> bool:
    # Thousandths for every resource, memory too.
    return any(
        name not in other or quantity.milli_value() > other[name].milli_value()
        for name, quantity in one.items()
    )


def _has_amounts(status: ContainerStatus) -> bool:
    return status.resources is not None or status.allocated_resources is not None


def _containers(pod: Pod, defaults: ResourceList, *, use_pod_level_status: bool) -> ResourceList:
    """The maximum of what the spec asks for, what is allocated and what is in effect."""
    leaves_spec_out = is_resize_infeasible(pod)
    status = pod.status
    # On a name clash the first one counts, of a container before that of an init container.
    listed = [*status.container_statuses, *status.init_container_statuses]
    statuses = {each.name: each for each in reversed(listed)}

    def total_of(
        request_of: Callable[[Container, ContainerStatus | None], ResourceList | None],
    ) -> ResourceList:
        def of_container(container: Container) -> ResourceList:
            requests = request_of(container, statuses.get(container.name))
            if requests is None:
                requests = {} if leaves_spec_out else container.resources.requests or {}
            return with_defaults(requests, defaults)

        return container_total(pod, of_container, of_container)

    footprint: ResourceList = {}
    if not leaves_spec_out:
        raise_to(footprint, total_of(lambda container, _: container.resources.requests or {}))
    of_pod = status.resources and status.resources.requests
    if use_pod_level_status and status.allocated_resources is not None and of_pod is not None:
        raise_to(footprint, of_pod)
        raise_to(footprint, status.allocated_resources)
    else:
        raise_to(footprint, total_of(lambda _, status: _actual(status)))
        raise_to(footprint, total_of(lambda _, status: status and status.allocated_resources))
    return footprint


def _actual(status: ContainerStatus | None) -> ResourceList | None:
    if status is None:
        return None
    requests = status.resources and status.resources.requests
    return status.allocated_resources if requests is None else requests


def _pod_level(pod: Pod, *, use_status: bool) -> ResourceList:
    """What replaces the containers' sums, name by name."""
    spec, status = pod.spec.resources, pod.status
    requests = (spec and spec.requests) or {}
    if use_status and status.resources is not None:
        effective = {} if is_resize_infeasible(pod) else dict(requests)
        raise_to(effective, status.resources.requests or {})
        raise_to(effective, status.allocated_resources or {})
        requests = effective
    return {name: quantity for name, quantity in requests.items() if is_pod_level_name(name)}
