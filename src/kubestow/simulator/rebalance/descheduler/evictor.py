"""Which pods a policy lets go: the rules of DefaultEvictor, budgets, and the limits of a round."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kubestow.api.labels import Selector, parse_label_selector
from kubestow.api.owners import controller_of
from kubestow.api.pod import is_terminating, priority_of
from kubestow.api.pod_info import PodInfo
from kubestow.errors import ConfigError
from kubestow.simulator.input.pods import MIRROR, PodKey
from kubestow.simulator.rebalance.budgets import Budgets, is_healthy
from kubestow.simulator.rebalance.descheduler.policy import DeschedulerPolicy, EvictorArgs
from kubestow.simulator.rebalance.descheduler.view import View
from kubestow.simulator.rebalance.ground import Ground
from kubestow.simulator.rebalance.options import SYSTEM_PRIORITY

_EVICT: Final = "descheduler.alpha.kubernetes.io/evict"
_STAY: Final = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
_MANDATORY: Final = "Mandatory"

LOCAL_STORAGE: Final = "PodsWithLocalStorage"
DAEMON_SETS: Final = "DaemonSetPods"
CRITICAL: Final = "SystemCriticalPods"
BARE: Final = "FailedBarePods"
CLAIMS: Final = "PodsWithPVC"
NO_BUDGET: Final = "PodsWithoutPDB"
DEVICES: Final = "PodsWithResourceClaims"
_BY_DEFAULT: Final = (LOCAL_STORAGE, CRITICAL, BARE, DAEMON_SETS)
_KNOWN: Final = frozenset((*_BY_DEFAULT, CLAIMS, NO_BUDGET, DEVICES))


class PodFilter:
    """The filters of one profile."""

    def __init__(self, args: EvictorArgs, ground: Ground, budgets: Budgets) -> None:
        self._args = args
        self._ground = ground
        self._budgets = budgets
        self._protected = _protections(args)
        self._selector = _selector(args)
        self._namespaces = (
            None
            if args.namespace_label_selector is None
            else parse_label_selector(args.namespace_label_selector)
        )
        self._threshold = _threshold(args, ground)
        self._replicas = Counter(
            owner.uid for pod in ground.cluster.objects.pods if (owner := controller_of(pod))
        )

    def passes(self, pod: PodInfo) -> bool:
        """Whether a plugin may choose the pod."""
        annotations = pod.pod.metadata.annotations
        if _EVICT in annotations:
            return True
        if self._args.no_eviction_policy == _MANDATORY and _STAY in annotations:
            return False
        owner = controller_of(pod.pod)
        is_static = MIRROR in annotations or (owner is not None and owner.kind == "Node")
        return not (is_static or is_terminating(pod.pod) or any(self._objections(pod)))

    def _objections(self, pod: PodInfo) -> Iterator[bool]:
        spec, protected = pod.pod.spec, self._protected
        owners = pod.pod.metadata.owner_references
        yield not owners
        yield DAEMON_SETS in protected and any(owner.kind == "DaemonSet" for owner in owners)
        yield CRITICAL in protected and priority_of(pod.pod) >= SYSTEM_PRIORITY
        yield self._threshold is not None and priority_of(pod.pod) >= self._threshold
        yield LOCAL_STORAGE in protected and PodKey.of(pod.pod) in self._ground.local_volumes
        yield CLAIMS in protected and any(
            volume.persistent_volume_claim is not None for volume in spec.volumes
        )
        yield NO_BUDGET in protected and not self._budgets.covering(pod.pod)
        yield DEVICES in protected and bool(spec.resource_claims)
        yield self._selector is not None and not self._selector.matches(pod.pod.metadata.labels)
        yield self._args.min_replicas > 1 and any(
            self._replicas[owner.uid] < self._args.min_replicas for owner in owners
        )

    def passes_at_last(self, pod: PodInfo, view: View) -> bool:
        """Whether the pod is evicted once it is chosen."""
        if self._args.node_fit and not view.fits_elsewhere(pod):
            return False
        if self._namespaces is None:
            return True
        namespace = self._ground.cluster.objects.namespaces.get(pod.namespace)
        return namespace is not None and self._namespaces.matches(namespace.metadata.labels)


class Round:
    """The evictions of one round, in order. `refused_count`: by disruption budgets."""

    def __init__(self, policy: DeschedulerPolicy, view: View, budgets: Budgets) -> None:
        self._policy = policy
        self._view = view
        self._budgets = budgets
        self._by_node: Counter[str] = Counter()
        self._by_namespace: Counter[str] = Counter()
        self._disrupted: Counter[str] = Counter()
        self.evicted: list[tuple[str, PodInfo]] = []
        self.refused_count = 0

    def evict(self, plugin: str, pod: PodInfo) -> bool:
        """Evict a pod for a plugin; whether it was."""
        policy, node = self._policy, pod.pod.spec.node_name
        if (
            _is_reached(policy.total, len(self.evicted))
            or _is_reached(policy.per_node, self._by_node[node])
            or _is_reached(policy.per_namespace, self._by_namespace[pod.namespace])
        ):
            return False
        if not self._is_allowed(pod):
            self.refused_count += 1
            return False
        self._by_node[node] += 1
        self._by_namespace[pod.namespace] += 1
        self.evicted.append((plugin, pod))
        self._view.gone(pod)
        return True

    def _is_allowed(self, pod: PodInfo) -> bool:
        """Whether budgets allow it beside the evictions before: none of these is ready again."""
        if self._budgets.reason(pod.pod):
            return False
        for budget in self._budgets.covering(pod.pod):
            if is_healthy(pod.pod):
                if budget.healthy - self._disrupted[budget.key] <= budget.needed:
                    return False
                self._disrupted[budget.key] += 1
        return True


def offer(filters: PodFilter, round_: Round, view: View, plugin: str) -> Callable[[PodInfo], bool]:
    """The function that a strategy calls with each pod that it evicts."""

    def evict(pod: PodInfo) -> bool:
        return filters.passes_at_last(pod, view) and round_.evict(plugin, pod)

    return evict


def _is_reached(limit: int | None, count: int) -> bool:
    return limit is not None and count >= limit


def _protections(args: EvictorArgs) -> Sequence[str]:
    written = args.pod_protections
    for name in (*written.default_disabled, *written.extra_enabled):
        if name not in _KNOWN:
            raise ConfigError(f'DefaultEvictor: podProtections has no "{name}"')
    if written.default_disabled or written.extra_enabled:
        kept = [name for name in _BY_DEFAULT if name not in written.default_disabled]
        return (*kept, *written.extra_enabled)
    flags = (
        (LOCAL_STORAGE, not args.evict_local_storage_pods),
        (DAEMON_SETS, not args.evict_daemon_set_pods),
        (CRITICAL, not args.evict_system_critical_pods),
        (CLAIMS, args.ignore_pvc_pods),
        (NO_BUDGET, args.ignore_pods_without_pdb),
    )
    return [name for name, is_on in flags if is_on]


def _selector(args: EvictorArgs) -> Selector | None:
    return None if args.label_selector is None else parse_label_selector(args.label_selector)


def _threshold(args: EvictorArgs, ground: Ground) -> int | None:
    threshold = args.priority_threshold
    if threshold is None:
        return None
    if threshold.value is not None or not threshold.name:
        return threshold.value
    found = ground.cluster.objects.priority_classes.get(threshold.name)
    if found is None:
        raise ConfigError(
            f'DefaultEvictor: priorityThreshold names the PriorityClass "{threshold.name}", which '
            "the cluster does not have"
        )
    return found.value
