"""Resource requests of a pod: one formula, evaluated in four views.

Node accounting, the fit filter, the fit score and the balanced score read the same pod with
different options (spec 01 §3.2); mixing them up is the classic source of off-by-some differences.
So each view is a function here and no other module combines the options.

    view                     reads status   pod-level override   defaults for absent cpu, memory
    A  accounted_request     yes            yes                  in the non-zero numbers only
    B  filter_request        no             yes                  no
    C  score_request         no             no                   both
    D  balance_request       yes            yes                  no

Invariants: sums are exact and rounded once, on the pod's total; an absent name is not a zero; no
list of a pod is ever changed or returned.
Not here: requests that come from device claims (alpha and off, spec 01 §3.5).
"""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from kubestow.api.meta import ResourceList
from kubestow.api.pod import (
    Container,
    ContainerStatus,
    Pod,
    PodStatus,
    ResourceRequirements,
    first_condition,
)
from kubestow.api.quantity import ZERO, Quantity, parse_quantity
from kubestow.api.resources import CPU, MEMORY, Resources, amount, is_hugepage

DEFAULT_CPU: Final = parse_quantity("100m")
DEFAULT_MEMORY: Final = parse_quantity("200Mi")


class AccountedRequest(msgspec.Struct, frozen=True, gc=False):
    """What a pod adds to its node's counters. Shared by all readers: clone before changing."""

    requested: Resources
    non_zero_cpu: int  # thousandths
    non_zero_memory: int  # bytes


def accounted_request(
    pod: Pod, *, use_pod_level: bool = True, use_pod_level_status: bool = True
) -> AccountedRequest:
    """View A. The two options are the gates PodLevelResources and
    InPlacePodLevelResourcesVerticalScaling."""
    lists = _plain_lists(pod, use_status=True, use_pod_level=use_pod_level)
    if lists is not None:
        return accounted_sum(lists)
    return _account(pod, use_pod_level=use_pod_level, use_pod_level_status=use_pod_level_status)


def filter_request(pod: Pod, *, use_pod_level: bool = True) -> Resources:
    """View B."""
    resources = Resources()
    resources.set_max(pod_requests(pod, use_status=False, use_pod_level=use_pod_level))
    return resources


def score_request(pod: Pod) -> ResourceList:
    """View C. Pod-level requests are not read here, as upstream (spec 01 §3.2, note on C)."""
    return pod_requests(
        pod, use_status=False, use_pod_level=False, cpu_default=True, memory_default=True
    )


def balance_request(
    pod: Pod, *, use_pod_level: bool = True, use_pod_level_status: bool = True
) -> ResourceList:
    """View D; the options are those of view A."""
    return pod_requests(
        pod,
        use_status=True,
        use_pod_level=use_pod_level,
        use_pod_level_status=use_pod_level_status,
    )


def request_lists(pod: Pod) -> list[ResourceList] | None:
    """The containers' request lists, if every view is decided by these alone; else None."""
    return _plain_lists(pod, use_status=True, use_pod_level=True)


def request_value(name: str, resource_list: ResourceList) -> int:
    """The number a view's total gives for a resource; a name it lacks counts 0."""
    quantity = resource_list.get(name)
    return 0 if quantity is None else amount(name, quantity)


def is_scaled_down(old: Pod, new: Pod) -> bool:
    """Whether the pod requests less of some resource (spec 01 §3.2, other consumers)."""
    if (
        old.spec is new.spec
        and not has_status_amounts(old.status)
        and not has_status_amounts(new.status)
    ):
        return False
    before = pod_requests(old, use_status=True, use_pod_level=True)
    after = pod_requests(new, use_status=True, use_pod_level=True)
    # Thousandths for every resource, memory too.
    return any(
        name not in after or after[name].milli_value() < quantity.milli_value()
        for name, quantity in before.items()
    )


def pod_requests(
    pod: Pod,
    *,
    use_status: bool,
    use_pod_level: bool,
    cpu_default: bool = False,
    memory_default: bool = False,
    use_pod_level_status: bool = True,
) -> ResourceList:
    """The pod's effective request (spec 01 §3.1) as a fresh list."""
    defaults = default_requests(cpu=cpu_default, memory=memory_default)
    lists = _plain_lists(pod, use_status=use_status, use_pod_level=use_pod_level)
    if lists is not None:
        return _sum(with_defaults(requests, defaults) for requests in lists)
    return _evaluate(
        pod,
        use_status=use_status,
        use_pod_level=use_pod_level,
        use_pod_level_status=use_pod_level_status,
        defaults=defaults,
    )


def is_sidecar(init_container: Container) -> bool:
    """Whether an init container keeps running beside the regular ones."""
    return init_container.restart_policy == "Always"


# --- The formula ------------------------------------------------------------------------------


def _evaluate(
    pod: Pod,
    *,
    use_status: bool,
    use_pod_level: bool,
    use_pod_level_status: bool,
    defaults: ResourceList,
) -> ResourceList:
    """Spec 01 §3.1, step by step (step 4 is off)."""
    statuses = statuses_by_name(pod) if use_status else {}
    is_infeasible = use_status and is_resize_infeasible(pod)

    def request_of(container: Container) -> ResourceList:
        status = statuses.get(container.name)
        requests = _container_request(container, status, is_infeasible=is_infeasible)
        return with_defaults(requests, defaults)

    def init_request_of(container: Container) -> ResourceList:
        # Plain init containers are always read from the spec (spec 01 §3.3).
        return with_defaults(container.resources.requests or {}, defaults)

    total = container_total(pod, request_of, init_request_of)
    if use_pod_level:
        total |= _pod_level_request(
            pod, use_status=use_status and use_pod_level_status, is_infeasible=is_infeasible
        )
    # After the override, so that overhead comes on top of pod-level requests.
    if pod.spec.overhead is not None:
        add_requests(total, pod.spec.overhead)
    return total


def container_total(
    pod: Pod,
    request_of: Callable[[Container], ResourceList],
    init_request_of: Callable[[Container], ResourceList],
) -> ResourceList:
    """What all containers together request; `init_request_of` is for init containers that end."""
    total = _sum(request_of(container) for container in pod.spec.containers)
    sidecars: ResourceList = {}
    init_peak: ResourceList = {}
    for container in pod.spec.init_containers:
        if is_sidecar(container):
            request = request_of(container)
            add_requests(total, request)
            add_requests(sidecars, request)
            during = _named(sidecars, request)
        else:
            request = init_request_of(container)
            during = _sum((request, _named(sidecars, request)))
        # Only names of this container: for all others the peak has what the sidecars request.
        raise_to(init_peak, during)
    raise_to(total, init_peak)
    return total


def _container_request(
    container: Container, status: ContainerStatus | None, *, is_infeasible: bool
) -> ResourceList:
    requests = container.resources.requests or {}
    if status is None or status.resources is None:
        # `allocatedResources` alone is ignored.
        return requests
    return _resized(
        requests, status.resources, status.allocated_resources, is_infeasible=is_infeasible
    )


def _pod_level_request(pod: Pod, *, use_status: bool, is_infeasible: bool) -> ResourceList:
    """What replaces the containers' sums, name by name (spec 01 §3.4)."""
    requests = (pod.spec.resources and pod.spec.resources.requests) or {}
    supported = [name for name in requests if is_pod_level_name(name)]
    effective = requests
    if use_status and pod.status.resources is not None:
        effective = _resized(
            requests,
            pod.status.resources,
            pod.status.allocated_resources,
            is_infeasible=is_infeasible,
        )
    # A name lost in an infeasible resize becomes an explicit zero.
    return {name: effective.get(name, ZERO) for name in supported}


def _resized(
    spec: ResourceList,
    actuated: ResourceRequirements,
    allocated: ResourceList | None,
    *,
    is_infeasible: bool,
) -> ResourceList:
    """The maximum of spec, actuated and allocated; an infeasible spec is left out."""
    effective = {} if is_infeasible else dict(spec)
    raise_to(effective, actuated.requests or {})
    raise_to(effective, allocated or {})
    return effective


def has_status_amounts(status: PodStatus) -> bool:
    """Whether a status has amounts that count instead of those of the spec, or beside them; or says
    that those of the spec do not count."""
    if status.resources is not None or status.allocated_resources:
        return True
    for container in status.container_statuses + status.init_container_statuses:
        if container.resources is not None or container.allocated_resources:
            return True
    return is_infeasible(status)


def statuses_by_name(pod: Pod) -> dict[str, ContainerStatus]:
    # One map for both kinds: an init container's status wins on a name clash.
    status = pod.status
    return {
        entry.name: entry for entry in (*status.container_statuses, *status.init_container_statuses)
    }


def is_resize_infeasible(pod: Pod) -> bool:
    return is_infeasible(pod.status)


def is_infeasible(status: PodStatus) -> bool:
    """Whether the resize of the pod with this status can never be done."""
    # The first condition of the type decides, by its reason alone; its status is not read.
    condition = first_condition(status.conditions, "PodResizePending")
    return condition is not None and condition.reason == "Infeasible"


def is_pod_level_name(name: str) -> bool:
    return name in (CPU, MEMORY) or is_hugepage(name)


def is_pod_level_active(pod: Pod) -> bool:
    requests = (pod.spec.resources and pod.spec.resources.requests) or {}
    return any(is_pod_level_name(name) for name in requests)


def _account(pod: Pod, *, use_pod_level: bool, use_pod_level_status: bool) -> AccountedRequest:
    total = balance_request(
        pod, use_pod_level=use_pod_level, use_pod_level_status=use_pod_level_status
    )
    # Spec 01 §4: with pod-level requests a default counts only for a name the total lacks.
    is_override = use_pod_level and is_pod_level_active(pod)
    non_zero = pod_requests(
        pod,
        use_status=True,
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


# --- The short path: regular containers and nothing else ---------------------------------------


def _plain_lists(pod: Pod, *, use_status: bool, use_pod_level: bool) -> list[ResourceList] | None:
    """The containers' request lists, if the formula is nothing but their sum; else None."""
    spec = pod.spec
    if spec.init_containers or spec.overhead is not None:
        return None
    if use_pod_level and spec.resources is not None:
        return None
    if use_status and not _is_settled(pod):
        return None
    return [container.resources.requests or {} for container in spec.containers]


def _is_settled(pod: Pod) -> bool:
    """Whether the status equals the spec, so that reading it changes nothing, in any edition.

    Each amount is then the maximum of equal ones.
    """
    status = pod.status
    if status.resources is not None or is_infeasible(status):
        return False
    statuses = status.container_statuses + status.init_container_statuses
    if not statuses:
        return True
    containers = pod.spec.containers
    requests_of = {container.name: container.resources.requests for container in containers}
    for each in statuses:
        if each.name not in requests_of:
            continue
        requests = requests_of[each.name]
        if each.resources is not None and each.resources.requests != requests:
            return False
        if each.allocated_resources is not None and each.allocated_resources != requests:
            return False
    return True


def accounted_sum(lists: list[ResourceList]) -> AccountedRequest:
    """View A of a pod whose containers' lists decide it (`request_lists`)."""
    total = lists[0] if len(lists) == 1 else _sum(lists)
    requested = Resources.from_list(total)
    cpu, memory = requested.milli_cpu, requested.memory
    for requests in lists:
        if CPU not in requests or MEMORY not in requests:
            cpu = _plain_non_zero(lists, total, CPU, DEFAULT_CPU).milli_value()
            memory = _plain_non_zero(lists, total, MEMORY, DEFAULT_MEMORY).value()
            break
    return AccountedRequest(requested, cpu, memory)


def _plain_non_zero(
    lists: list[ResourceList], total: ResourceList, name: str, default: Quantity
) -> Quantity:
    # Addition is exact, so the defaults may be added to the finished sum.
    non_zero = total.get(name, ZERO)
    for requests in lists:
        if name not in requests:
            non_zero += default
    return non_zero


# --- Lists: a name absent on one side keeps the other side's value ------------------------------


def _sum(lists: Iterable[ResourceList]) -> ResourceList:
    total: ResourceList = {}
    for requests in lists:
        add_requests(total, requests)
    return total


def add_requests(total: ResourceList, requests: ResourceList) -> None:
    for name, quantity in requests.items():
        current = total.get(name)
        total[name] = quantity if current is None else current + quantity


def _named(requests: ResourceList, names: Iterable[str]) -> ResourceList:
    """The part of a list that has these names."""
    return {name: requests[name] for name in names if name in requests}


def raise_to(total: ResourceList, requests: ResourceList) -> None:
    for name, quantity in requests.items():
        current = total.get(name)
        if current is None or current < quantity:
            total[name] = quantity


def default_requests(*, cpu: bool, memory: bool) -> ResourceList:
    defaults: ResourceList = {}
    if cpu:
        defaults[CPU] = DEFAULT_CPU
    if memory:
        defaults[MEMORY] = DEFAULT_MEMORY
    return defaults


def with_defaults(requests: ResourceList, defaults: ResourceList) -> ResourceList:
    # Only an absent name gets its default; an explicit zero stays (spec 01 §4).
    return {**defaults, **requests} if defaults else requests
