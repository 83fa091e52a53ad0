"""The spread constraints that apply to a pod (spec 06 §6.3.1 to §6.3.3).

A pod has its own constraints or, if it has none at all, those of the profile, with the selector
of its services and its controller. Both kinds are brought into one form here.
"""

from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Final, Literal, Protocol

import msgspec

from kubestow.api.labels import (
    EVERYTHING,
    Selector,
    SelectorError,
    equality,
    parse_label_selector,
)
from kubestow.api.node_selector import ANY_NODE
from kubestow.api.pod import Pod, TopologySpreadConstraint
from kubestow.api.pod_info import PodInfo
from kubestow.api.topology import HOSTNAME_LABEL, ZONE_LABEL
from kubestow.cache.objects import ClusterObjects
from kubestow.config.plugin_args import PodTopologySpreadArgs
from kubestow.errors import PluginError
from kubestow.framework.reuse import Concern
from kubestow.index.taint_match import TOLERATIONS_KEPT_MAX
from kubestow.index.topology.domains import Eligibility
from kubestow.index.topology.measures import NO_PODS, InAll, Live, PodSet
from kubestow.plugins._shared import bases
from kubestow.plugins.pod_topology_spread.default_selectors import DefaultSelectors

WhenUnsatisfiable = Literal["DoNotSchedule", "ScheduleAnyway"]

HARD: Final = "DoNotSchedule"
SOFT: Final = "ScheduleAnyway"
SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME_LABEL, when_unsatisfiable=SOFT),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE_LABEL, when_unsatisfiable=SOFT),
)

# Measures of this many selectors are kept.
MEASURES_MAX: Final = 2_048

# Nothing is kept for longer constraints or specs: any pod may have some.
_LONG_TEXT: Final = 16 << 10
_ENCODER: Final = msgspec.json.Encoder()
_match_label_keys: Final = attrgetter("match_label_keys")

_HONOR: Final = "Honor"
_CONCERNS: Final = tuple(Concern)
_NOTHING: Final = Concern.NOTHING
_BITS: Final = {HARD: int(Concern.FILTER), SOFT: int(Concern.SCORE)}
_ADJECTIVES: Final = {HARD: "hard", SOFT: "soft"}


class Pausing(Protocol):
    """The timer of an attempt, which rests between constraints on more keys than are kept."""

    def pause(self) -> None: ...


class Constraint(msgspec.Struct, frozen=True, kw_only=True):
    """One constraint, with everything filled in."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False

    def measure(self, namespace: str) -> Live:
        """What is counted: never pods of other namespaces (spec 06 §6.3.4)."""
        return _measure(namespace, self.selector)


class Eligibilities:
    """Which nodes' pods count for the constraints of one pod.

    `keys` are labels the nodes must have. The constraints share at most four objects.
    """

    __slots__ = ("_comparison_operators", "_counts_unlabelled", "_keys", "_made", "_pod")

    def __init__(
        self,
        pod: PodInfo,
        keys: tuple[str, ...],
        *,
        comparison_operators: bool,
        counts_unlabelled: bool = False,
    ) -> None:
        self._pod = pod
        self._keys = keys
        self._comparison_operators = comparison_operators
        self._counts_unlabelled = counts_unlabelled
        self._made: dict[tuple[bool, bool], Eligibility] = {}

    def of(self, constraint: Constraint) -> Eligibility:
        policies = constraint.honors_affinity, constraint.honors_taints
        eligibility = self._made.get(policies)
        if eligibility is None:
            eligibility = self._made[policies] = Eligibility(
                self._keys,
                self._pod.required_node_affinity if constraint.honors_affinity else ANY_NODE,
                self._pod.pod.spec.tolerations if constraint.honors_taints else None,
                self._comparison_operators,
                self._counts_unlabelled,
            )
        return eligibility


class SelectorsOfPods(Protocol):
    def of(self, pod: Pod) -> Selector:
        """Empty (`is_empty`) if default constraints do not apply to the pod."""
        ...


class Constraints:
    """Finds a pod's constraints, for one profile."""

    def __init__(
        self, args: PodTopologySpreadArgs, objects: ClusterObjects, *, merges_label_keys: bool
    ) -> None:
        self.is_system_defaulted: Final = args.defaulting_type == "System"
        self._defaults = SYSTEM_DEFAULTS if self.is_system_defaulted else args.default_constraints
        self._defaults_of = {
            action: [given for given in self._defaults if given.when_unsatisfiable == action]
            for action in (HARD, SOFT)
        }
        self.has_defaults: Final = bool(self._defaults)
        self._merges_label_keys = merges_label_keys
        self._selectors: SelectorsOfPods = DefaultSelectors(objects)

    def concern(self, pod: PodInfo) -> Concern:
        """Whether the pod has hard constraints, and whether soft ones, its own or by default."""
        given = pod.pod.spec.topology_spread_constraints
        if not given:
            given = self._defaults
            if not given or self._selectors.of(pod.pod).is_empty:
                return _NOTHING
        asked = 0
        for constraint in given:
            asked |= _BITS.get(constraint.when_unsatisfiable, 0)
        return _CONCERNS[asked]

    def kind_of(self, pod: PodInfo) -> Hashable | None:
        """Equal for pods with the same constraints on the same nodes, their own or by default.

        None if it is too long to be kept.
        """
        spec = pod.pod.spec
        own, affinity, tolerations = (
            spec.topology_spread_constraints,
            bases.node_affinity(pod),
            spec.tolerations,
        )
        if len(affinity or "") > _LONG_TEXT or len(tolerations) > TOLERATIONS_KEPT_MAX:
            return None
        if not own:
            selector = self._selectors.of(pod.pod) if self._defaults else EVERYTHING
            return pod.namespace, affinity, tolerations, selector
        # Equal pods are decoded one by one: their texts are compared faster than their parts.
        text = _ENCODER.encode(own)
        if len(text) > _LONG_TEXT:
            return None
        keys = [*chain.from_iterable(map(_match_label_keys, own))]
        values = tuple([pod.pod.metadata.labels.get(key) for key in keys]) if keys else ()
        return pod.namespace, affinity, tolerations, text, values

    def of(self, pod: Pod, action: WhenUnsatisfiable) -> list[Constraint]:
        """The pod's constraints with that action, in order; raises PluginError if one is illegal.

        Own constraints of any action disable all defaults.
        """
        own = pod.spec.topology_spread_constraints
        if own:
            try:
                return [
                    self._own(constraint, pod.metadata.labels)
                    for constraint in own
                    if constraint.when_unsatisfiable == action
                ]
            except SelectorError as error:
                raise PluginError(
                    f"obtaining pod's {_ADJECTIVES[action]} topology spread constraints: {error}"
                ) from error
        return self._default(pod, action)

    def _default(self, pod: Pod, action: WhenUnsatisfiable) -> list[Constraint]:
        defaults = self._defaults_of[action]
        if not defaults:
            return []
        selector = self._selectors.of(pod)
        if selector.is_empty:
            return []
        return [_constraint(given, selector) for given in defaults]

    def _own(self, given: TopologySpreadConstraint, labels: Mapping[str, str]) -> Constraint:
        selector = parse_label_selector(given.label_selector)
        if given.match_label_keys and self._merges_label_keys:
            selector = _narrowed(selector, given.match_label_keys, labels)
        return _constraint(given, selector)


def topology_keys(constraints: Iterable[Constraint]) -> tuple[str, ...]:
    """The keys of the constraints, each once, sorted."""
    return tuple(sorted({constraint.topology_key for constraint in constraints}))


@lru_cache(MEASURES_MAX)
def _measure(namespace: str, selector: Selector) -> Live:
    # A selector that matches everything counts no pods, although it matches the pod itself.
    if selector.is_empty:
        return Live(NO_PODS)
    return Live(InAll((PodSet(frozenset((namespace,)), selector),)))


def _narrowed(selector: Selector, keys: Iterable[str], labels: Mapping[str, str]) -> Selector:
    """The selector AND the pod's labels with these keys; one that matches nothing stays so."""
    return selector.narrowed(equality(key, labels[key]) for key in keys if key in labels)


def _constraint(given: TopologySpreadConstraint, selector: Selector) -> Constraint:
    affinity_policy = given.node_affinity_policy
    return Constraint(
        max_skew=given.max_skew,
        topology_key=given.topology_key,
        selector=selector,
        min_domains=1 if given.min_domains is None else given.min_domains,
        honors_affinity=affinity_policy is None or affinity_policy == _HONOR,
        honors_taints=given.node_taints_policy == _HONOR,
    )
