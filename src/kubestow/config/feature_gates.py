"""Feature gates the scheduler knows, with the defaults of v1.36 (spec 04 §1 and the chapters'
tables)."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kubestow.errors import ConfigError


class Gate(NamedTuple):
    default: bool
    locked: bool = False


GATES: Final[Mapping[str, Gate]] = {
    "ClearingNominatedNodeNameAfterBinding": Gate(True),
    "DRAAdminAccess": Gate(True, locked=True),
    "DRAConsumableCapacity": Gate(True),
    "DRADeviceBindingConditions": Gate(True),
    "DRADeviceTaintRules": Gate(False),
    "DRADeviceTaints": Gate(True),
    "DRAExtendedResource": Gate(True),
    "DRAListTypeAttributes": Gate(False),
    "DRANodeAllocatableResources": Gate(False),
    "DRAPartitionableDevices": Gate(True),
    "DRAPrioritizedList": Gate(True),
    "DRAResourceClaimDeviceStatus": Gate(True),
    "DRASchedulerFilterTimeout": Gate(True),
    "DRAWorkloadResourceClaims": Gate(False),
    "DynamicResourceAllocation": Gate(True, locked=True),
    "GangScheduling": Gate(False),
    "GenericWorkload": Gate(False),
    "ImageVolume": Gate(True, locked=True),
    "InPlacePodLevelResourcesVerticalScaling": Gate(True),
    "InPlacePodVerticalScaling": Gate(True, locked=True),
    "MatchLabelKeysInPodAffinity": Gate(True, locked=True),
    "MatchLabelKeysInPodTopologySpread": Gate(True),
    "MutableCSINodeAllocatableCount": Gate(True, locked=True),
    "NodeDeclaredFeatures": Gate(True),
    "NodeInclusionPolicyInPodTopologySpread": Gate(True, locked=True),
    "NominatedNodeNameForExpectation": Gate(True),
    "OpportunisticBatching": Gate(True),
    "PodLevelResources": Gate(True),
    "SchedulerAsyncAPICalls": Gate(False),
    "SchedulerAsyncPreemption": Gate(True),
    "SchedulerPopFromBackoffQ": Gate(True),
    "SchedulerQueueingHints": Gate(True, locked=True),
    "SidecarContainers": Gate(True, locked=True),
    "StorageCapacityScoring": Gate(False),
    "TaintTolerationComparisonOperators": Gate(False),
    "TopologyAwareWorkloadScheduling": Gate(False),
    "VolumeAttributesClass": Gate(True, locked=True),
    "VolumeLimitScaling": Gate(False),
    "WorkloadAwarePreemption": Gate(False),
}


class FeatureGates:
    """Which gates are on. Immutable."""

    def __init__(self, overrides: Mapping[str, bool] | None = None) -> None:
        self._enabled = {name: gate.default for name, gate in GATES.items()}
        for name, value in (overrides or {}).items():
            gate = GATES.get(name)
            if gate is None:
                raise ConfigError(f'unrecognized feature gate: "{name}"')
            if gate.locked and value != gate.default:
                raise ConfigError(
                    f"cannot set feature gate {name} to {str(value).lower()}, "
                    f"feature is locked to {str(gate.default).lower()}"
                )
            self._enabled[name] = value

    def enabled(self, name: str) -> bool:
        return self._enabled[name]


DEFAULT_GATES: Final = FeatureGates()
