"""The options of an older scheduler: version, Policy or provider, gates (spec 09 §13.1)."""

from collections.abc import Mapping
from typing import Final

import msgspec

from kubestow.config.flags import ParsedFlags
from kubestow.config.profile import ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions.compatibility import AlgorithmOptions, Compatibility
from kubestow.editions.flags import OLDER_FLAGS
from kubestow.editions.gates import parse_older_gates
from kubestow.errors import ConfigError

_LOCK_FIELDS: Final = {
    "lock-object-name": "resource_name",
    "lock-object-namespace": "resource_namespace",
}


class OlderOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What only older versions of the scheduler have."""

    version: Compatibility = Compatibility.TODAY
    algorithm: AlgorithmOptions = AlgorithmOptions()
    # The gates of that version, all of them; empty for today's.
    gates: Mapping[str, bool] = {}

    def profile(self) -> ProfileConfig:
        """The default profile of that version, and its provider."""
        name = self.algorithm.scheduler_name
        if self.version in (Compatibility.TODAY, Compatibility.V1_9):
            return ProfileConfig(scheduler_name=name)
        # Imported here, like every other edition: only when it is to run.
        from kubestow.editions.v1_20.profiles import older_profile

        return older_profile(
            self.version,
            self.gates,
            provider=self.algorithm.algorithm_provider,
            scheduler_name=name,
        )


def older_options(flags: ParsedFlags) -> OlderOptions:
    """What the flags say of an older version; raises ConfigError."""
    version = Compatibility.parse(flags.text("compatibility"))
    if version is Compatibility.TODAY:
        for flag in OLDER_FLAGS:
            if flag.name in flags.given and flag.name != "compatibility":
                raise ConfigError(f"--{flag.name} needs --compatibility with an older version")
        return OlderOptions()
    if version is Compatibility.V1_9:
        for name in ("config", "write-config-to"):
            if flags.text(name):
                raise ConfigError(
                    f"--{name} is newer than v1.9; give a Policy with --policy-config-file"
                )
    algorithm = AlgorithmOptions(
        algorithm_provider=flags.text("algorithm-provider"),
        policy_config_file=flags.text("policy-config-file"),
        policy_configmap=flags.text("policy-configmap"),
        policy_configmap_namespace=flags.text("policy-configmap-namespace"),
        use_legacy_policy_config=flags.switch("use-legacy-policy-config"),
        scheduler_name=flags.text("scheduler-name"),
        hard_pod_affinity_symmetric_weight=flags.number("hard-pod-affinity-symmetric-weight"),
    )
    if flags.text("config") and algorithm != AlgorithmOptions():
        raise ConfigError("--config replaces the flags of a Policy, a provider and a name")
    gates = parse_older_gates(version, flags.texts("feature-gates"))
    return OlderOptions(version=version, algorithm=algorithm, gates=gates)


def with_older_lock(config: SchedulerConfig, flags: ParsedFlags) -> SchedulerConfig:
    """The configuration with the name of the lock, where an older flag gives it."""
    names = {field: flags.text(flag) for flag, field in _LOCK_FIELDS.items() if flag in flags.given}
    election = msgspec.structs.replace(config.leader_election, **names)
    return msgspec.structs.replace(config, leader_election=election)
