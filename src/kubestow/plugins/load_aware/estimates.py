"""What a pod is expected to use before it is measured.

1. the mean of what measured pods of the same workload use
2. the larger one of a share of its requests and a share of its limits
3. a default
"""

from collections.abc import Callable, Mapping
from typing import Final

from kubestow.api.meta import ResourceList
from kubestow.api.pod import Container, Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.quantity import parse_quantity
from kubestow.api.requests import container_total
from kubestow.api.resources import amount
from kubestow.config.load_aware_args import RESOURCES, LoadEstimate
from kubestow.plugins.load_aware.placed import PLACED_MAX
from kubestow.usage.measurement import CPU_MILLI_MAX, MEMORY_BYTES_MAX, Amounts
from kubestow.usage.view import UsageView
from kubestow.usage.workload import workload_of

_LIMITS: Final = (CPU_MILLI_MAX, MEMORY_BYTES_MAX)


class Estimates:
    def __init__(self, args: LoadEstimate, usage: UsageView) -> None:
        self._siblings = args.siblings
        self._usage = usage
        self._shares = [
            (args.requests_percent.get(name, 0), args.limits_percent.get(name, 0))
            for name in RESOURCES
        ]
        self._defaults = [_default(args.defaults, name) for name in RESOURCES]
        self._kept: dict[object, Amounts] = {}
        self._version = -1
        usage.subscribe(self._after_measurements)

    def of(self, pod: PodInfo) -> Amounts:
        """The estimate of a pod, which pods of one shape and workload share."""
        key: object = pod.shape
        workload = ""
        if self._siblings and pod.pod.metadata.owner_references:
            workload = workload_of(pod.pod)
            key = key, workload
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= PLACED_MAX:
                self._kept.clear()
            found = self._kept[key] = self._by_siblings(workload) or self.by_spec(pod.pod)
        return found

    def _after_measurements(self) -> None:
        if self._version != self._usage.pod_version:
            self._version = self._usage.pod_version
            self._kept.clear()

    def _by_siblings(self, workload: str) -> Amounts | None:
        usage = self._usage.workload(workload) if workload else None
        if usage is None:
            return None
        count = usage.pod_count
        return Amounts(usage.cpu_milli // count, usage.memory_bytes // count)

    def by_spec(self, pod: Pod) -> Amounts:
        """By requests and limits alone."""
        requests = _total(pod, lambda container: container.resources.requests or {})
        limits = _total(pod, lambda container: container.resources.limits or {})
        return Amounts(*(self._expected(place, requests, limits) for place in range(2)))

    def _expected(self, place: int, requests: ResourceList, limits: ResourceList) -> int:
        name = RESOURCES[place]
        of_requests, of_limits = self._shares[place]
        expected = 0 if name in requests or name in limits else self._defaults[place]
        if name in requests:
            expected = amount(name, requests[name]) * of_requests // 100
        if name in limits:
            expected = max(expected, amount(name, limits[name]) * of_limits // 100)
        return min(max(expected, 0), _LIMITS[place])


def _total(pod: Pod, read: Callable[[Container], ResourceList]) -> ResourceList:
    total = container_total(pod, read, read)
    for name, quantity in (pod.spec.overhead or {}).items():
        total[name] = total[name] + quantity if name in total else quantity
    return total


def _default(defaults: Mapping[str, str], name: str) -> int:
    return amount(name, parse_quantity(defaults.get(name, "0")))
