"""The flags of `kubestow run` that choose an edition, and those of older ones (spec 09 §13.1).

`compatibility` is this project's; the others have the names and defaults of v1.9, and v1.17 and
v1.20 had most of them, too.
"""

from typing import Final, Literal

import msgspec

from kubestow.config.flag import BOOL, INT32, STRING, Flag, Section

_SECTION: Final = Section.OLDER

EDITION_FLAGS: Final[tuple[Flag, ...]] = (
    Flag(
        _SECTION,
        "compatibility",
        STRING,
        "",
        "Schedule as this version of kube-scheduler: v1.9, v1.17, v1.20, v1.36 or v1.37; by "
        "default that of the API server. The other flags of this section are for v1.20 and older.",
    ),
    Flag(
        _SECTION,
        "algorithm-provider",
        STRING,
        "DefaultProvider",
        "The rules to schedule by: DefaultProvider or ClusterAutoscalerProvider.",
    ),
    Flag(
        _SECTION,
        "policy-config-file",
        STRING,
        "",
        "A Policy, YAML or JSON; not used if --policy-configmap is given.",
    ),
    Flag(
        _SECTION,
        "policy-configmap",
        STRING,
        "",
        "The ConfigMap that has the Policy as policy.cfg. The process ends when it changes.",
    ),
    Flag(
        _SECTION,
        "policy-configmap-namespace",
        STRING,
        "kube-system",
        "The namespace of the ConfigMap.",
    ),
    Flag(
        _SECTION,
        "use-legacy-policy-config",
        BOOL,
        False,
        "Use the Policy file even if a ConfigMap is named.",
    ),
    Flag(
        _SECTION,
        "scheduler-name",
        STRING,
        "default-scheduler",
        "spec.schedulerName of the pods to place.",
    ),
    Flag(
        _SECTION,
        "hard-pod-affinity-symmetric-weight",
        INT32,
        1,
        "Weight of required affinity of running pods to the pod, 1 to 100; a Policy overrides it.",
    ),
    Flag(
        _SECTION,
        "lock-object-name",
        STRING,
        "kube-scheduler",
        "v1.9: the older name of --leader-elect-resource-name.",
    ),
    Flag(
        _SECTION,
        "lock-object-namespace",
        STRING,
        "kube-system",
        "v1.9: the older name of --leader-elect-resource-namespace.",
    ),
)


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
