"""Validation of the arguments of built-in plugins (spec 09 §3.5).

Each function gets the path of the arguments, which is empty when a plugin is built.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kubestow.api.gang_dialects import DIALECTS
from kubestow.api.labels import SelectorError, qualified_name_errors
from kubestow.api.node_selector import PreferredTerms, compile_node_selector
from kubestow.api.pod import TopologySpreadConstraint
from kubestow.config.arguments import has_filter_timeout
from kubestow.config.feature_gates import FeatureGates, has_binding_conditions
from kubestow.config.field_errors import (
    child,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from kubestow.config.plugin_args import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    GangsArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from kubestow.config.scalars import Duration, seconds

_RATIO: Final = "RequestedToCapacityRatio"
_STRATEGIES: Final = ("LeastAllocated", "MostAllocated", _RATIO)
_DEFAULTING_TYPES: Final = ("System", "List")
_UNSATISFIABLE_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_BINDING_TIMEOUT_MIN: Final = seconds(1)
_PERCENT: Final = "not in valid range [0, 100]"
# As long as a pod can wait at Permit at all.
_SCHEDULING_TIMEOUT_MAX: Final = seconds(15 * 60)


def validate_args(args: PluginArgs, path: str, gates: FeatureGates) -> list[str]:
    """All errors of complete arguments, in upstream's order."""
    match args:
        case DefaultPreemptionArgs():
            return _default_preemption(args, path)
        case InterPodAffinityArgs():
            return _inter_pod_affinity(args, path)
        case NodeAffinityArgs():
            return _node_affinity(args, path)
        case NodeResourcesBalancedAllocationArgs():
            return _balanced_allocation(args, path)
        case NodeResourcesFitArgs():
            return _fit(args, path)
        case PodTopologySpreadArgs():
            return _pod_topology_spread(args, path)
        case VolumeBindingArgs():
            return _volume_binding(args, path, gates)
        case DynamicResourcesArgs():
            return _dynamic_resources(args, path, gates)
        case GangsArgs():
            return _gangs(args, path)
        case _:
            return []


def _default_preemption(args: DefaultPreemptionArgs, path: str) -> list[str]:
    percentage, absolute = "minCandidateNodesPercentage", "minCandidateNodesAbsolute"
    errors: list[str] = []
    if not 0 <= args.min_candidate_nodes_percentage <= 100:
        value = args.min_candidate_nodes_percentage
        errors.append(invalid(child(path, percentage), value, _PERCENT))
    if args.min_candidate_nodes_absolute < 0:
        value = args.min_candidate_nodes_absolute
        errors.append(invalid(child(path, absolute), value, "not in valid range [0, inf)"))
    if args.min_candidate_nodes_percentage == 0 and args.min_candidate_nodes_absolute == 0:
        rule = "cannot be zero at the same time as"
        errors.append(invalid(child(path, percentage), 0, f"{rule} {absolute}"))
        errors.append(invalid(child(path, absolute), 0, f"{rule} {percentage}"))
    return errors


def _inter_pod_affinity(args: InterPodAffinityArgs, path: str) -> list[str]:
    if 0 <= args.hard_pod_affinity_weight <= 100:
        return []
    return [invalid(child(path, "hardPodAffinityWeight"), args.hard_pod_affinity_weight, _PERCENT)]


def _node_affinity(args: NodeAffinityArgs, path: str) -> list[str]:
    affinity = args.added_affinity
    if affinity is None:
        return []
    at = child(path, "addedAffinity")
    errors: list[str] = []
    if affinity.required is not None:
        try:
            compile_node_selector(affinity.required, strict=True, path=child(at, _REQUIRED))
        except SelectorError as error:
            errors += error.errors
    try:
        PreferredTerms.of(affinity.preferred or (), path=child(at, _PREFERRED))
    except SelectorError as error:
        errors += error.errors
    return errors


def _balanced_allocation(args: NodeResourcesBalancedAllocationArgs, path: str) -> list[str]:
    errors: list[str] = []
    seen: set[str] = set()
    for index, spec in enumerate(args.resources):
        at = f"{child(path, 'resources')}[{index}]"
        if spec.name in seen:
            errors.append(duplicate(f"{at}.name", spec.name))
        seen.add(spec.name)
        if spec.weight != 1:
            errors.append(invalid(f"{at}.weight", spec.weight, "must be 1"))
    return errors


def _fit(args: NodeResourcesFitArgs, path: str) -> list[str]:
    errors = _name_errors(args.ignored_resources, child(path, "ignoredResources"))
    at = child(path, "ignoredResourceGroups")
    for index, group in enumerate(args.ignored_resource_groups):
        if "/" in group:
            rule = "resource group name can't contain '/'"
            errors.append(invalid(f"{at}[{index}]", group, rule))
        errors += _label_name_errors(group, f"{at}[{index}]")
    return errors + _scoring_strategy(args.scoring_strategy, child(path, "scoringStrategy"))


def _scoring_strategy(strategy: ScoringStrategy, path: str) -> list[str]:
    errors: list[str] = []
    if strategy.type not in _STRATEGIES:
        errors.append(unsupported(child(path, "type"), strategy.type, _STRATEGIES))
    for index, spec in enumerate(strategy.resources):
        if not 0 < spec.weight <= 100:
            rule = f"resource weight of {spec.name} not in valid range (0, 100]"
            errors.append(invalid(f"{child(path, 'resources')}[{index}].weight", spec.weight, rule))
    at, ratio = child(path, "requestedToCapacityRatio"), strategy.requested_to_capacity_ratio
    if strategy.type == _RATIO and ratio is None:
        errors.append(required(at, f"must be specified when type is {_RATIO}"))
    elif strategy.type != _RATIO and ratio is not None:
        errors.append(forbidden(at, f"must be nil when type is not {_RATIO}"))
    elif ratio is not None:
        errors += _shape(ratio.shape, child(at, "shape"))
    return errors


def _shape(points: Sequence[UtilizationShapePoint], path: str) -> list[str]:
    if not points:
        return [required(path, "at least one point must be specified")]
    errors: list[str] = []
    for index in range(1, len(points)):
        utilization = points[index].utilization
        if points[index - 1].utilization >= utilization:
            rule = "values must be sorted in increasing order"
            errors.append(invalid(f"{path}[{index}].utilization", utilization, rule))
            break  # Only the first error is reported.
    for index, point in enumerate(points):
        if not 0 <= point.utilization <= 100:
            errors.append(invalid(f"{path}[{index}].utilization", point.utilization, _PERCENT))
        if not 0 <= point.score <= 10:
            rule = "not in valid range [0, 10]"
            errors.append(invalid(f"{path}[{index}].score", point.score, rule))
    return errors


def _pod_topology_spread(args: PodTopologySpreadArgs, path: str) -> list[str]:
    errors: list[str] = []
    at = child(path, "defaultingType")
    if args.defaulting_type not in _DEFAULTING_TYPES:
        errors.append(unsupported(at, args.defaulting_type, _DEFAULTING_TYPES))
    elif args.defaulting_type == "System" and args.default_constraints:
        rule = "when .defaultConstraints are not empty"
        errors.append(invalid(at, args.defaulting_type, rule))
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(args.default_constraints):
        at = f"{child(path, 'defaultConstraints')}[{index}]"
        errors += _constraint(constraint, at)
        key = (constraint.topology_key, constraint.when_unsatisfiable)
        if key in seen:
            errors.append(duplicate(at, f"{{{key[0]}, {key[1]}}}"))
        seen.add(key)
    return errors


def _constraint(constraint: TopologySpreadConstraint, path: str) -> list[str]:
    errors: list[str] = []
    if constraint.max_skew <= 0:
        rule = "not in valid range (0, inf)"
        errors.append(invalid(f"{path}.maxSkew", constraint.max_skew, rule))
    if not constraint.topology_key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    else:
        errors += _label_name_errors(constraint.topology_key, f"{path}.topologyKey")
    action = constraint.when_unsatisfiable
    if not action:
        errors.append(required(f"{path}.whenUnsatisfiable", "can not be empty"))
    elif action not in _UNSATISFIABLE_ACTIONS:
        at = f"{path}.whenUnsatisfiable"
        errors.append(unsupported(at, action, _UNSATISFIABLE_ACTIONS))
    if constraint.label_selector is not None:
        rule = "constraint must not define a selector, as they deduced for each pod"
        errors.append(forbidden(f"{path}.labelSelector", rule))
    return errors


def _volume_binding(args: VolumeBindingArgs, path: str, gates: FeatureGates) -> list[str]:
    errors: list[str] = []
    if args.bind_timeout_seconds < 0:
        rule = "invalid BindTimeoutSeconds, should not be a negative value"
        errors.append(invalid(child(path, "bindTimeoutSeconds"), args.bind_timeout_seconds, rule))
    at = child(path, "shape")
    if gates.enabled("StorageCapacityScoring"):
        errors += _shape(args.shape or (), at)
    elif args.shape is not None:
        # Upstream prints its internal form with Go's field names.
        points = [{"Utilization": point.utilization, "Score": point.score} for point in args.shape]
        rule = "remove it or turn on the feature gate StorageCapacityScoring"
        errors.append(invalid(at, points, f"unexpected field `shape`, {rule}"))
    return errors


def _dynamic_resources(args: DynamicResourcesArgs, path: str, gates: FeatureGates) -> list[str]:
    errors: list[str] = []
    if args.filter_timeout:
        at, timeout = child(path, "filterTimeout"), Duration.parse(args.filter_timeout)
        if not has_filter_timeout(gates):
            # Spec 09 §3.5.8: the name in the text differs from the gate's.
            errors.append(forbidden(at, "DRASchedulingFilterTimeout feature gate is disabled"))
        elif timeout < 0:
            errors.append(invalid(at, timeout, "must be zero or positive"))
    if args.binding_timeout:
        at, timeout = child(path, "bindingTimeout"), Duration.parse(args.binding_timeout)
        if not has_binding_conditions(gates):
            needed = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus"
            errors.append(forbidden(at, f"{needed} feature gate is disabled"))
        elif timeout < _BINDING_TIMEOUT_MIN:
            errors.append(invalid(at, timeout, "must be at least 1 second"))
    return errors


def _gangs(args: GangsArgs, path: str) -> list[str]:
    errors: list[str] = []
    at = child(path, "schedulingTimeout")
    try:
        timeout = Duration.parse(args.scheduling_timeout)
    except ValueError as error:
        errors.append(invalid(at, args.scheduling_timeout, str(error)))
    else:
        if not 0 < timeout <= _SCHEDULING_TIMEOUT_MAX:
            rule = f"must be above zero and at most {_SCHEDULING_TIMEOUT_MAX}"
            errors.append(invalid(at, args.scheduling_timeout, rule))
    at = child(path, "topologyLevels")
    errors += _name_errors(args.topology_levels, at)
    for index, key in enumerate(args.topology_levels):
        if key in args.topology_levels[:index]:
            errors.append(duplicate(f"{at}[{index}]", key))
    for index, name in enumerate(args.dialects):
        if name not in DIALECTS:
            errors.append(unsupported(f"{child(path, 'dialects')}[{index}]", name, DIALECTS))
    return errors


def _name_errors(names: Iterable[str], path: str) -> list[str]:
    return [
        error
        for index, name in enumerate(names)
        for error in _label_name_errors(name, f"{path}[{index}]")
    ]


def _label_name_errors(name: str, path: str) -> list[str]:
    return [invalid(path, name, problem) for problem in qualified_name_errors(name)]
