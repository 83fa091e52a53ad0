"""The flags of v1.9, v1.17 and v1.20 that choose rules (spec 09 §13.1)."""

from typing import Literal

import msgspec


class AlgorithmOptions(msgspec.Struct, frozen=True, kw_only=True):
    """A provider, or a Policy in a file or a ConfigMap; whose pods are placed."""

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
