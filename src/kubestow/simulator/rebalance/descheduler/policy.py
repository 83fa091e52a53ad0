"""Policies of the descheduler as data (`descheduler/v1alpha2`)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from kubestow.api.files import parse_document
from kubestow.api.meta import JsonObject, LabelSelector
from kubestow.cluster.documents import is_object
from kubestow.config.strict import clean, convert
from kubestow.errors import ConfigError, DecodeError, InputError
from kubestow.files.reading import read_file

T = TypeVar("T", bound=msgspec.Struct)

API_VERSION: Final = "descheduler/v1alpha2"
KIND: Final = "DeschedulerPolicy"
EVICTOR: Final = "DefaultEvictor"
# Percentages of what nodes have, by resource.
Thresholds = dict[str, float]


class Args(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Arguments of a plugin. These two are those of every object."""

    api_version: str = ""
    kind: str = ""


class Namespaces(msgspec.Struct, frozen=True, rename="camel"):
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def has(self, namespace: str) -> bool:
        return namespace not in self.exclude and (not self.include or namespace in self.include)


class Selecting(Args, frozen=True, kw_only=True):
    """Arguments that say which pods a plugin looks at."""

    namespaces: Namespaces = Namespaces()
    label_selector: LabelSelector | None = None


class PriorityThreshold(msgspec.Struct, frozen=True, rename="camel"):
    value: int | None = None
    name: str = ""


class PodProtections(msgspec.Struct, frozen=True, rename="camel"):
    default_disabled: tuple[str, ...] = ()
    extra_enabled: tuple[str, ...] = ()
    config: JsonObject | None = None


class EvictorArgs(Args, frozen=True, kw_only=True):
    """Arguments of DefaultEvictor."""

    node_selector: str = ""
    evict_local_storage_pods: bool = False
    evict_daemon_set_pods: bool = False
    evict_system_critical_pods: bool = False
    evict_failed_bare_pods: bool = False
    ignore_pvc_pods: bool = False
    ignore_pods_without_pdb: bool = msgspec.field(name="ignorePodsWithoutPDB", default=False)
    label_selector: LabelSelector | None = None
    namespace_label_selector: LabelSelector | None = None
    priority_threshold: PriorityThreshold | None = None
    node_fit: bool = False
    min_replicas: int = 0
    min_pod_age: str | None = None
    no_eviction_policy: str = ""
    pod_protections: PodProtections = PodProtections()


class EvictionLimits(msgspec.Struct, frozen=True, rename="camel"):
    node: int | None = None


class LowUtilizationArgs(Args, frozen=True, kw_only=True):
    thresholds: Thresholds = {}
    target_thresholds: Thresholds = {}
    use_deviation_thresholds: bool = False
    number_of_nodes: int = 0
    evictable_namespaces: Namespaces = Namespaces()
    eviction_limits: EvictionLimits = EvictionLimits()
    metrics_utilization: JsonObject | None = None


class HighUtilizationArgs(Args, frozen=True, kw_only=True):
    thresholds: Thresholds = {}
    number_of_nodes: int = 0
    evictable_namespaces: Namespaces = Namespaces()
    eviction_modes: tuple[str, ...] = ()


class DuplicatesArgs(Args, frozen=True, kw_only=True):
    namespaces: Namespaces = Namespaces()
    exclude_owner_kinds: tuple[str, ...] = ()


class NodeAffinityRemovalArgs(Selecting, frozen=True, kw_only=True):
    node_affinity_type: tuple[str, ...] = ()


class NodeTaintsArgs(Selecting, frozen=True, kw_only=True):
    include_prefer_no_schedule: bool = False
    excluded_taints: tuple[str, ...] = ()
    included_taints: tuple[str, ...] | None = None


class SpreadArgs(Selecting, frozen=True, kw_only=True):
    constraints: tuple[str, ...] = ("DoNotSchedule",)
    topology_balance_node_fit: bool = True


class RestartsArgs(Selecting, frozen=True, kw_only=True):
    pod_restart_threshold: int = 0
    including_init_containers: bool = False
    states: tuple[str, ...] = ()


class LifeTimeArgs(Selecting, frozen=True, kw_only=True):
    max_pod_life_time_seconds: int | None = None
    states: tuple[str, ...] = ()
    including_init_containers: bool = False


class FailedPodsArgs(Selecting, frozen=True, kw_only=True):
    exclude_owner_kinds: tuple[str, ...] = ()
    min_pod_lifetime_seconds: int | None = None
    reasons: tuple[str, ...] = ()
    including_init_containers: bool = False


# The plugins that are judged. Those of the second table see all nodes at once.
DESCHEDULING: Final[Mapping[str, type[Args]]] = {
    "PodLifeTime": LifeTimeArgs,
    "RemoveFailedPods": FailedPodsArgs,
    "RemovePodsHavingTooManyRestarts": RestartsArgs,
    "RemovePodsViolatingInterPodAntiAffinity": Selecting,
    "RemovePodsViolatingNodeAffinity": NodeAffinityRemovalArgs,
    "RemovePodsViolatingNodeTaints": NodeTaintsArgs,
}
BALANCING: Final[Mapping[str, type[Args]]] = {
    "HighNodeUtilization": HighUtilizationArgs,
    "LowNodeUtilization": LowUtilizationArgs,
    "RemoveDuplicates": DuplicatesArgs,
    "RemovePodsViolatingTopologySpreadConstraint": SpreadArgs,
}


class PolicyPluginConfig(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    args: JsonObject | None = None


class PolicyPluginSet(msgspec.Struct, frozen=True, rename="camel"):
    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


class PolicyPlugins(msgspec.Struct, frozen=True, rename="camel"):
    presort: PolicyPluginSet = PolicyPluginSet()
    sort: PolicyPluginSet = PolicyPluginSet()
    deschedule: PolicyPluginSet = PolicyPluginSet()
    balance: PolicyPluginSet = PolicyPluginSet()
    filter: PolicyPluginSet = PolicyPluginSet()
    preevictionfilter: PolicyPluginSet = PolicyPluginSet()


class WrittenProfile(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    plugin_config: tuple[PolicyPluginConfig, ...] = ()
    plugins: PolicyPlugins = PolicyPlugins()


class WrittenPolicy(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    profiles: tuple[WrittenProfile, ...] = ()
    node_selector: str = ""
    max_no_of_pods_to_evict_per_node: int | None = None
    max_no_of_pods_to_evict_per_namespace: int | None = None
    max_no_of_pods_to_evict_total: int | None = None
    eviction_failure_event_notification: bool = False
    metrics_collector: JsonObject | None = None
    metrics_providers: tuple[JsonObject, ...] = ()
    grace_period_seconds: int | None = None
    prometheus: JsonObject | None = None


class PolicyProfile(msgspec.Struct, frozen=True):
    """The plugins of one profile that are judged, in the order in which they run."""

    evictor: EvictorArgs
    descheduling: tuple[tuple[str, Args], ...]
    balancing: tuple[tuple[str, Args], ...]


class DeschedulerPolicy(msgspec.Struct, frozen=True):
    """`notes`: what of the policy is not judged."""

    profiles: tuple[PolicyProfile, ...]
    node_selector: str
    per_node: int | None
    per_namespace: int | None
    total: int | None
    notes: tuple[str, ...]


def load_policy(path: Path) -> DeschedulerPolicy:
    """Raises InputError with the field that is wrong."""
    try:
        document = parse_document(read_file(path), name=str(path))
    except OSError as error:
        raise InputError(f'policy "{path}": {error.strerror}') from error
    except DecodeError as error:
        raise InputError(f"policy: {error}") from error
    try:
        return read_policy(document)
    except ConfigError as error:
        raise InputError(f'policy "{path}": {error}') from error


def read_policy(document: object) -> DeschedulerPolicy:
    """Raises ConfigError with the field that is wrong."""
    if not is_object(document):
        raise ConfigError(f"expected one {KIND} of {API_VERSION}")
    if document.get("kind") == "ConfigMap" and is_object(data := document.get("data")):
        return read_policy(_in_config_map(data))
    found = f"{document.get('apiVersion', '')} {document.get('kind', '')}".strip()
    if (document.get("apiVersion"), document.get("kind")) != (API_VERSION, KIND):
        raise ConfigError(f'it is "{found}", expected {API_VERSION} {KIND}')
    written = _converted(document, WrittenPolicy, KIND)
    notes: list[str] = []
    profiles = tuple(_profile(profile, notes) for profile in written.profiles)
    if not profiles:
        raise ConfigError("it has no profiles, so it evicts nothing")
    return DeschedulerPolicy(
        profiles,
        written.node_selector,
        written.max_no_of_pods_to_evict_per_node,
        written.max_no_of_pods_to_evict_per_namespace,
        written.max_no_of_pods_to_evict_total,
        tuple(dict.fromkeys(notes)),
    )


def _in_config_map(data: JsonObject) -> object:
    """The policy in a ConfigMap, as deployments of the descheduler have it."""
    texts = [text for text in data.values() if isinstance(text, str) and KIND in text]
    if not texts:
        raise ConfigError(f"the ConfigMap has no {KIND}")
    try:
        return parse_document(texts[0].encode(), name="the ConfigMap")
    except DecodeError as error:
        raise ConfigError(str(error)) from error


def _profile(written: WrittenProfile, notes: list[str]) -> PolicyProfile:
    configured = {entry.name: entry.args for entry in written.plugin_config}
    sets = written.plugins
    evictor = _converted(configured.get(EVICTOR) or {}, EvictorArgs, EVICTOR)
    if evictor.min_pod_age is not None:
        notes.append(f"not judged: minPodAge of {EVICTOR}")
    if evictor.pod_protections.config is not None:
        notes.append(f"not judged: podProtections.config of {EVICTOR}")
    for names in (sets.filter.enabled, sets.preevictionfilter.enabled):
        notes += [f"not judged: the filter {name}" for name in names if name != EVICTOR]
    return PolicyProfile(
        evictor,
        tuple(_enabled(sets.deschedule.enabled, DESCHEDULING, configured, notes)),
        tuple(_enabled(sets.balance.enabled, BALANCING, configured, notes)),
    )


def _enabled(
    names: tuple[str, ...],
    known: Mapping[str, type[Args]],
    configured: Mapping[str, JsonObject | None],
    notes: list[str],
) -> list[tuple[str, Args]]:
    enabled: list[tuple[str, Args]] = []
    for name in names:
        if name not in known:
            notes.append(f"not judged: the plugin {name}")
            continue
        args = _converted(configured.get(name) or {}, known[name], name)
        if isinstance(args, LowUtilizationArgs) and args.metrics_utilization is not None:
            notes.append(f"{name} is judged by what pods request, not by metrics")
        enabled.append((name, args))
    return enabled


def _converted(document: object, cls: type[T], kind: str) -> T:
    cleaned = clean(document, cls)
    if cleaned.errors:
        raise ConfigError(f"{kind}: {cleaned.errors[0]}")
    return convert(cleaned.document, cls, kind=kind)
