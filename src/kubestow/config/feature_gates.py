"""The feature gates of the scheduler, with stages and defaults of v1.36 (spec 09 §12, 04 §1).

A locked gate accepts no other value than its default. `AllAlpha` and `AllBeta` set every gate of
their stage that is not set by name. Gates of other components are accepted and have no effect
(`other_gates`).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubestow.config.gate import Gate, Stage
from kubestow.config.other_gates import OTHER_GATES
from kubestow.config.scalars import parse_bool
from kubestow.errors import ConfigError

_DRA: Final = ("DynamicResourceAllocation",)
_DEVICE_STATUS: Final = (*_DRA, "DRAResourceClaimDeviceStatus")
_WORKLOAD: Final = ("GenericWorkload",)
_ALPHA: Final = Gate(Stage.ALPHA, default=False)
_BETA: Final = Gate(Stage.BETA, default=True)
_LOCKED: Final = Gate(Stage.GA, default=True, locked=True)

GATES: Final[Mapping[str, Gate]] = {
    "AllAlpha": _ALPHA,
    "AllBeta": _BETA._replace(default=False),
    "AtomicFIFO": _BETA,
    "ClearingNominatedNodeNameAfterBinding": _BETA,
    "ClientsAllowCARotation": _BETA,
    "ClientsAllowCBOR": _ALPHA,
    "ClientsAllowTLSCacheGC": _BETA,
    "ClientsPreferCBOR": _ALPHA,
    "ComponentFlagz": _BETA,
    "ComponentStatusz": _BETA,
    "ContextualLogging": _BETA,
    "CoordinatedLeaderElection": _BETA._replace(default=False),
    "DRAAdminAccess": _LOCKED._replace(needs=_DRA),
    "DRAConsumableCapacity": _BETA._replace(needs=_DRA),
    "DRADeviceBindingConditions": _BETA._replace(needs=_DEVICE_STATUS),
    "DRADeviceTaintRules": _BETA._replace(default=False, needs=(*_DRA, "DRADeviceTaints")),
    "DRADeviceTaints": _BETA._replace(needs=_DRA),
    "DRAExtendedResource": _BETA._replace(needs=_DRA),
    "DRAListTypeAttributes": _ALPHA._replace(needs=_DRA),
    "DRANodeAllocatableResources": _ALPHA._replace(needs=_DRA),
    "DRAPartitionableDevices": _BETA._replace(needs=_DRA),
    "DRAPrioritizedList": Gate(Stage.GA, default=True, needs=_DRA),
    "DRAResourceClaimDeviceStatus": _BETA,
    "DRAResourceClaimGranularStatusAuthorization": _BETA._replace(needs=_DEVICE_STATUS),
    "DRASchedulerFilterTimeout": _BETA._replace(needs=_DRA),
    "DRAWorkloadResourceClaims": _ALPHA._replace(needs=(*_DRA, *_WORKLOAD)),
    "DynamicResourceAllocation": _LOCKED,
    "GangScheduling": _ALPHA._replace(needs=_WORKLOAD),
    "GenericWorkload": _ALPHA,
    "ImageVolume": _LOCKED,
    "InOrderInformers": _LOCKED,
    "InOrderInformersBatchProcess": _BETA,
    "InPlacePodLevelResourcesVerticalScaling": _BETA,
    "InPlacePodVerticalScaling": _LOCKED,
    "LoggingAlphaOptions": _ALPHA,
    "LoggingBetaOptions": _BETA,
    "MatchLabelKeysInPodAffinity": _LOCKED,
    "MatchLabelKeysInPodTopologySpread": _BETA,
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": _BETA,
    "MutableCSINodeAllocatableCount": _LOCKED,
    "NativeHistograms": _ALPHA,
    "NodeDeclaredFeatures": _BETA,
    "NodeInclusionPolicyInPodTopologySpread": _LOCKED,
    "NominatedNodeNameForExpectation": _BETA,
    "OpportunisticBatching": _BETA,
    "PodLevelResources": _BETA,
    "PodObservedGenerationTracking": _LOCKED,
    "PodSchedulingReadiness": _LOCKED,
    "SchedulerAsyncAPICalls": _BETA._replace(default=False),
    "SchedulerAsyncPreemption": _BETA,
    "SchedulerPopFromBackoffQ": _BETA,
    "SchedulerQueueingHints": _LOCKED,
    "SidecarContainers": _LOCKED,
    "StorageCapacityScoring": _ALPHA,
    "TaintTolerationComparisonOperators": _ALPHA,
    "TopologyAwareWorkloadScheduling": _ALPHA._replace(needs=_WORKLOAD),
    "UnlockWhileProcessingFIFO": _BETA,
    "VolumeAttributesClass": _LOCKED,
    "VolumeLimitScaling": _ALPHA,
    "WatchListClient": _BETA,
    "WorkloadAwarePreemption": _ALPHA._replace(needs=("GangScheduling",)),
}
_STAGE_GATES: Final = {"AllAlpha": Stage.ALPHA, "AllBeta": Stage.BETA}


class FeatureGates:
    """Which gates are on. Immutable."""

    def __init__(self, overrides: Mapping[str, bool] | None = None) -> None:
        """Raises ConfigError for unknown gates and for other values of locked ones."""
        overrides = dict(overrides or {})
        # As they were set.
        self.overrides: Final = overrides
        for name, value in overrides.items():
            _check(name, value)
        self._enabled = {name: gate.default for name, gate in GATES.items()}
        for special, stage in _STAGE_GATES.items():
            if special in overrides:
                named = (name for name, gate in GATES.items() if gate.stage == stage)
                self._enabled |= dict.fromkeys(named, overrides[special])
        self._enabled |= {name: on for name, on in overrides.items() if name in GATES}

    @property
    def without_effect(self) -> list[str]:
        """The gates that were set and that no rule of a scheduler reads."""
        return [name for name in self.overrides if name in OTHER_GATES]

    def enabled(self, name: str) -> bool:
        return self._enabled[name]

    def without(self, name: str) -> "FeatureGates":
        """The same with this gate off."""
        return FeatureGates({**self._enabled, name: False})

    def dependency_errors(self) -> list[str]:
        """Gates that are on though a gate they need is off."""
        errors: list[str] = []
        for name, gate in GATES.items():
            missing = [needed for needed in gate.needs if not self._enabled[needed]]
            if self._enabled[name] and missing:
                rule = "is enabled, but depends on features that are disabled"
                errors.append(f"{name} {rule}: [{' '.join(missing)}]")
        return errors

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureGates) and self._enabled == other._enabled

    def __hash__(self) -> int:
        return hash(frozenset(self._enabled.items()))


def parse_gates(texts: Iterable[str]) -> FeatureGates:
    """The gates of `--feature-gates`; raises ConfigError."""
    return FeatureGates(parse_gate_values(texts))


def parse_gate_values(texts: Iterable[str]) -> dict[str, bool]:
    """What `--feature-gates` sets: `[component:]Name=bool,…`, repeatable; the last value of a name
    counts. Raises ConfigError; names are not checked."""
    overrides: dict[str, bool] = {}
    prefixes: set[str] = set()
    for component, entry in _entries(texts):
        prefixes.add(component)
        if component not in ("", "kube"):
            raise ConfigError(f"component not registered: {component}")
        name, separator, value = (part.strip() for part in entry.partition("="))
        if not separator:
            raise ConfigError(f"missing bool value for {name}")
        try:
            overrides[name] = parse_bool(value)
        except ValueError as error:
            raise ConfigError(f"invalid value of {name}={value}, err: {error}") from error
    if len(prefixes) > 1:
        raise ConfigError(
            "set kube feature gates with default empty prefix or kube: prefix consistently, "
            "do not mix use"
        )
    return overrides


def _entries(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Component and `Name=bool` of every entry."""
    for text in texts:
        for entry in text.split(","):
            component, separator, setting = entry.strip().partition(":")
            if separator:
                yield component.strip(), setting.strip()
            elif component:
                yield "", component


def _check(name: str, value: bool) -> None:
    gate = GATES.get(name) or OTHER_GATES.get(name)
    if gate is None:
        raise ConfigError(f"unrecognized feature gate: {name}")
    if gate.locked and value != gate.default:
        raise ConfigError(
            f"cannot set feature gate {name} to {str(value).lower()}, "
            f"feature is locked to {str(gate.default).lower()}"
        )


DEFAULT_GATES: Final = FeatureGates()
