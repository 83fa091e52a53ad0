"""Which version of the scheduler decides, and the flags of the older ones (spec 09 §13.1)."""

from enum import StrEnum
from typing import Literal

import msgspec

from kubestow.errors import ConfigError


class Compatibility(StrEnum):
    TODAY = "v1.36"
    V1_20 = "v1.20"
    V1_17 = "v1.17"
    V1_9 = "v1.9"

    @classmethod
    def parse(cls, text: str) -> "Compatibility":
        try:
            return cls(text)
        except ValueError as error:
            names = ", ".join(sorted(cls))
            raise ConfigError(f'--compatibility is "{text}", expected one of {names}') from error


class AlgorithmOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The v1.9 flags that select algorithms (spec 09 §13.1)."""

    algorithm_provider: str = "DefaultProvider"
    policy_config_file: str = ""
    policy_configmap: str = ""
    policy_configmap_namespace: str = "kube-system"
    use_legacy_policy_config: bool = False
    scheduler_name: str = "default-scheduler"
    hard_pod_affinity_symmetric_weight: int = 1

    @property
    def source(self) -> Literal["provider", "file", "configmap"]:
        """Where the algorithms come from: the rule of v1.10, which fits all flag texts."""
        if self.use_legacy_policy_config or (self.policy_config_file and not self.policy_configmap):
            return "file"
        return "configmap" if self.policy_configmap else "provider"
