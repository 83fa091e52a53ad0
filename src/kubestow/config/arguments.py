"""The arguments of plugins, decoded and completed with defaults (spec 09 §3.1, §3.5).

The arguments of each built-in plugin are a kind of the configuration format and are decoded
strictly. Out-of-tree plugins declare a type (`args_type`); their arguments are decoded when a
profile is built.

Invariant: completing twice gives the same as once.
"""

from typing import Any, Final, NamedTuple

import msgspec

from kubestow.api.decode import is_map, quoted
from kubestow.config.documents import without_keys
from kubestow.config.feature_gates import FeatureGates, has_binding_conditions
from kubestow.config.kinds import API_VERSION, GROUP, check_registered
from kubestow.config.plugin_args import (
    ARGS_TYPES,
    CPU_AND_MEMORY,
    DynamicResourcesArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from kubestow.config.scalars import Duration
from kubestow.config.strict import clean, convert
from kubestow.errors import ConfigError

DEFAULT_SHAPE: Final = (
    UtilizationShapePoint(utilization=0, score=10),
    UtilizationShapePoint(utilization=100, score=0),
)
_TYPE_FIELDS: Final = ("apiVersion", "kind")


class DecodedArgs(NamedTuple):
    args: PluginArgs
    errors: list[str]  # unknown or duplicate fields


def decode_args(plugin: str, document: object, gates: FeatureGates) -> DecodedArgs:
    """The arguments of a built-in plugin, complete; raises ConfigError where a value does not fit.

    They may have `apiVersion` and `kind`, which must then be right.
    """
    args_type = ARGS_TYPES[plugin]
    if not is_map(document):
        raise ConfigError(f"decoding args for plugin {plugin}: found {quoted(document)}, not a map")
    kind = document.get("kind") or args_type.__name__
    api_version = document.get("apiVersion") or API_VERSION
    try:
        check_registered(api_version, kind)
    except ConfigError as error:
        raise ConfigError(f"decoding args for plugin {plugin}: {error}") from error
    if kind != args_type.__name__:
        raise ConfigError(
            f"args for plugin {plugin} were not of type {args_type.__name__}.{GROUP}, "
            f"got {kind}.{GROUP}"
        )
    cleaned, errors = clean(without_keys(document, *_TYPE_FIELDS), args_type)
    try:
        args = convert(cleaned, args_type, kind=args_type.__name__)
        args = complete_args(_without_gated(args, cleaned, gates), gates)
    except ConfigError as error:
        raise ConfigError(f"decoding args for plugin {plugin}: {error}") from error
    return DecodedArgs(args, errors)


def convert_args(plugin: str, document: object, args_type: type[PluginArgs]) -> PluginArgs:
    """The arguments of an out-of-tree plugin; raises ConfigError."""
    fields = without_keys(document, *_TYPE_FIELDS) if is_map(document) else document
    cleaned, errors = clean(fields, args_type)
    if errors:
        raise ConfigError(f"decoding args for plugin {plugin}: {', '.join(errors)}")
    try:
        return convert(cleaned, args_type, kind=args_type.__name__)
    except ConfigError as error:
        raise ConfigError(f"decoding args for plugin {plugin}: {error}") from error


def default_args(plugin: str, gates: FeatureGates) -> PluginArgs:
    return decode_args(plugin, {}, gates).args


def complete_args(args: PluginArgs, gates: FeatureGates) -> PluginArgs:
    """Replace zero values that mean a default; raises ConfigError for an invalid duration."""
    match args:
        case NodeResourcesFitArgs():
            strategy = msgspec.structs.replace(
                args.scoring_strategy, resources=_weighted(args.scoring_strategy.resources)
            )
            return msgspec.structs.replace(args, scoring_strategy=strategy)
        case NodeResourcesBalancedAllocationArgs():
            return msgspec.structs.replace(args, resources=_weighted(args.resources))
        case PodTopologySpreadArgs() if not args.defaulting_type:
            return msgspec.structs.replace(args, defaulting_type="System")
        case VolumeBindingArgs() if gates.enabled("StorageCapacityScoring") and not args.shape:
            return msgspec.structs.replace(args, shape=DEFAULT_SHAPE)
        case DynamicResourcesArgs():
            return msgspec.structs.replace(
                args,
                filter_timeout=_canonical("filterTimeout", args.filter_timeout),
                binding_timeout=_canonical("bindingTimeout", args.binding_timeout),
            )
        case _:
            return args


def _without_gated(args: PluginArgs, given: Any, gates: FeatureGates) -> PluginArgs:
    """Without its gate a field has no default; a given value stays, for validation to refuse."""
    if not isinstance(args, DynamicResourcesArgs):
        return args
    if "filterTimeout" not in given and not has_filter_timeout(gates):
        args = msgspec.structs.replace(args, filter_timeout="")
    if "bindingTimeout" not in given and not has_binding_conditions(gates):
        args = msgspec.structs.replace(args, binding_timeout="")
    return args


def has_filter_timeout(gates: FeatureGates) -> bool:
    return gates.enabled("DRASchedulerFilterTimeout")


def _weighted(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    return tuple(
        spec if spec.weight else msgspec.structs.replace(spec, weight=1)
        for spec in resources or CPU_AND_MEMORY
    )


def _canonical(field: str, text: str) -> str:
    if not text:
        return ""
    try:
        return str(Duration.parse(text))
    except ValueError as error:
        raise ConfigError(f"{field}: {error}") from error
