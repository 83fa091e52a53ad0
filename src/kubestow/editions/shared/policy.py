"""The Policy of v1.9 to v1.20: predicates, priorities and extenders of a scheduler (spec 09 §13).

A provider is a Policy with a name. Decoding is as lenient as it was: JSON or YAML, unknown fields
ignored, names of fields case-insensitive.

Not here: which predicates and priorities exist (`editions.v1_9.engine.algorithm`).
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import inspect

from kubestow.api.decode import is_list, is_map, quoted
from kubestow.api.labels import join_errors
from kubestow.config.documents import plain, read_document
from kubestow.config.extenders import ExtenderConfig, ExtenderTLSConfig
from kubestow.config.scalars import Duration
from kubestow.errors import ConfigError
from kubestow.files.reading import read_file
from kubestow.redaction import without_secrets

POLICY_KEY: Final = "policy.cfg"
DEFAULT_PROVIDER: Final = "DefaultProvider"
MANDATORY_PREDICATES: Final = ("CheckNodeCondition",)

# 2**63 - 1 divided by the best score: more would overflow a total.
WEIGHT_MAX: Final = (2**63 - 1) // 10
HARD_WEIGHT_MIN: Final = 1
HARD_WEIGHT_MAX: Final = 100

_NAME: Final = "^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])$"

Weight = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _Entry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of everything a Policy holds."""


class ServiceAffinityArgument(_Entry, frozen=True, kw_only=True):
    labels: tuple[str, ...] = ()


class LabelsPresenceArgument(_Entry, frozen=True, kw_only=True):
    labels: tuple[str, ...] = ()
    presence: bool = False


class ServiceAntiAffinityArgument(_Entry, frozen=True, kw_only=True):
    label: str = ""


class LabelPreferenceArgument(_Entry, frozen=True, kw_only=True):
    label: str = ""
    presence: bool = False


class PredicateArgument(_Entry, frozen=True, kw_only=True):
    service_affinity: ServiceAffinityArgument | None = None
    labels_presence: LabelsPresenceArgument | None = None


class ShapePointArgument(_Entry, frozen=True, kw_only=True):
    utilization: int = 0
    score: int = 0


class ResourceArgument(_Entry, frozen=True, kw_only=True):
    name: str = ""
    weight: int = 0


class CapacityRatioArgument(_Entry, frozen=True, kw_only=True):
    shape: tuple[ShapePointArgument, ...] = ()
    resources: tuple[ResourceArgument, ...] = ()


class PriorityArgument(_Entry, frozen=True, kw_only=True):
    service_anti_affinity: ServiceAntiAffinityArgument | None = None
    label_preference: LabelPreferenceArgument | None = None
    # Since v1.11.
    requested_to_capacity_ratio_arguments: CapacityRatioArgument | None = None


class PredicatePolicy(_Entry, frozen=True, kw_only=True):
    """A registered predicate, or with an argument a new one of any name."""

    name: str = ""
    argument: PredicateArgument | None = None


class PriorityPolicy(_Entry, frozen=True, kw_only=True):
    name: str = ""
    weight: Weight = 0
    argument: PriorityArgument | None = None


class PolicyExtender(_Entry, frozen=True, kw_only=True):
    """An extender as a Policy writes it; the timeout is in nanoseconds."""

    url_prefix: str = ""
    filter_verb: str = ""
    prioritize_verb: str = ""
    weight: Weight = 0
    bind_verb: str = ""
    enable_https: bool = False
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: int = 0
    node_cache_capable: bool = False

    def as_config(self) -> ExtenderConfig:
        return ExtenderConfig(
            url_prefix=self.url_prefix,
            filter_verb=self.filter_verb,
            prioritize_verb=self.prioritize_verb,
            weight=self.weight,
            bind_verb=self.bind_verb,
            enable_https=self.enable_https,
            tls_config=self.tls_config,
            http_timeout=Duration(self.http_timeout),
            node_cache_capable=self.node_cache_capable,
        )


class Policy(_Entry, frozen=True, kw_only=True):
    """A list that is missing (None) means the default one from v1.10 on, before that none at all.
    Without predicates only mandatory ones run; without priorities every node scores the same."""

    predicates: tuple[PredicatePolicy, ...] | None = None
    priorities: tuple[PriorityPolicy, ...] | None = None
    extenders: tuple[PolicyExtender, ...] = ()
    # 0 means the value of the flag.
    hard_pod_affinity_symmetric_weight: int = 0


def load_policy(path: str | Path) -> Policy:
    """The Policy in a file; raises ConfigError."""
    try:
        raw = read_file(path)
    except FileNotFoundError as error:
        raise ConfigError(f"missing policy config file {path}") from error
    except OSError as error:
        raise ConfigError(f"couldn't read policy config: {error.strerror or error}") from error
    return decode_policy(raw)


def policy_in_config_map(data: Mapping[str, str] | None, *, namespace: str, name: str) -> Policy:
    """The Policy in a ConfigMap's data, None for a missing ConfigMap; raises ConfigError."""
    if data is None:
        raise ConfigError(
            f'couldn\'t get policy config map {namespace}/{name}: configmaps "{name}" not found'
        )
    if POLICY_KEY not in data:
        raise ConfigError(f'missing policy config map value at key "{POLICY_KEY}"')
    return decode_policy(data[POLICY_KEY].encode())


def decode_policy(raw: bytes) -> Policy:
    """A Policy in a JSON or YAML text; raises ConfigError."""
    try:
        return convert_policy(plain(read_document(raw).value))
    except ConfigError as error:
        raise ConfigError(f"invalid policy: {error}") from error


def convert_policy(document: object) -> Policy:
    """A Policy from a decoded document; raises ConfigError."""
    if not is_map(document):
        raise ConfigError(f"found {quoted(document)}, expected a map")
    kind = document.get("kind", "Policy")
    if kind != "Policy":
        raise ConfigError(f"kind is {quoted(kind)}, expected Policy")
    try:
        folded = _with_known_keys(document, inspect.type_info(Policy))
        return msgspec.convert(folded, Policy)
    except msgspec.ValidationError as error:
        raise ConfigError(str(error)) from error


def provider_policy(name: str) -> Policy:
    """The algorithms of a provider; raises ConfigError."""
    policy = _PROVIDERS.get(name)
    if policy is None:
        raise ConfigError(
            f'couldn\'t create scheduler using provider "{name}": plugin "{name}" has not been '
            f"registered; the providers are {', '.join(sorted(_PROVIDERS))}"
        )
    return policy


def validate_policy(policy: Policy) -> None:
    """Raise ConfigError with all errors of weights and extenders (spec 09 §13.2)."""
    errors = [
        f"Priority {entry.name} should have a positive weight applied to it or it has overflown"
        for entry in policy.priorities or ()
        if not 0 < entry.weight < WEIGHT_MAX
    ]
    errors += [
        f"Priority for extender {without_secrets(extender.url_prefix)} should have a positive "
        "weight applied to it"
        for extender in policy.extenders
        if extender.prioritize_verb and extender.weight <= 0
    ]
    binder_count = sum(1 for extender in policy.extenders if extender.bind_verb)
    if binder_count > 1:
        errors.append(f"Only one extender can implement bind, found {binder_count}")
    if errors:
        raise ConfigError(join_errors(errors))


def hard_weight_of(policy: Policy, flag: int) -> int:
    """The weight of required pod affinity: that of the Policy if it has one, else the flag."""
    weight = policy.hard_pod_affinity_symmetric_weight or flag
    if not HARD_WEIGHT_MIN <= weight <= HARD_WEIGHT_MAX:
        raise ConfigError(
            f"invalid hardPodAffinitySymmetricWeight: {weight}, must be in the range "
            f"{HARD_WEIGHT_MIN}-{HARD_WEIGHT_MAX}"
        )
    return weight


def check_algorithm_name(name: str) -> None:
    if not re.match(_NAME, name):
        raise ConfigError(
            f"Algorithm name {name} does not match the name validation regexp {quoted(_NAME)}."
        )


def _with_known_keys(value: object, kind: inspect.Type) -> Any:
    """The document with the keys of the structs: Go ignores the case of field names, and a null
    counts as absent."""
    if isinstance(kind, inspect.UnionType):
        return _with_known_keys(value, kind.types[0])
    if isinstance(kind, inspect.VarTupleType) and is_list(value):
        return [_with_known_keys(entry, kind.item_type) for entry in value]
    if isinstance(kind, inspect.StructType) and is_map(value):
        fields = {field.encode_name.lower(): field for field in kind.fields}
        return {
            field.encode_name: _with_known_keys(entry, field.type)
            for key, entry in value.items()
            if entry is not None and (field := fields.get(key.lower())) is not None
        }
    return value


def _policy_of(predicates: Iterable[str], priorities: Mapping[str, int]) -> Policy:
    return Policy(
        predicates=tuple(PredicatePolicy(name=name) for name in predicates),
        priorities=tuple(
            PriorityPolicy(name=name, weight=weight) for name, weight in priorities.items()
        ),
    )


_DEFAULT_PREDICATES: Final = (
    "NoVolumeZoneConflict",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxAzureDiskVolumeCount",
    "MatchInterPodAffinity",
    "NoDiskConflict",
    "GeneralPredicates",
    "CheckNodeMemoryPressure",
    "CheckNodeDiskPressure",
    "CheckNodeCondition",
    "PodToleratesNodeTaints",
    "CheckVolumeBinding",
)
_SHARED_PRIORITIES: Final[Mapping[str, int]] = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
}
_PROVIDERS: Final[Mapping[str, Policy]] = {
    DEFAULT_PROVIDER: _policy_of(
        _DEFAULT_PREDICATES, {**_SHARED_PRIORITIES, "LeastRequestedPriority": 1}
    ),
    # Fills nodes, so that the autoscaler can remove empty ones.
    "ClusterAutoscalerProvider": _policy_of(
        _DEFAULT_PREDICATES, {**_SHARED_PRIORITIES, "MostRequestedPriority": 1}
    ),
}
