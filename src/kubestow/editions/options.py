"""The options of the chosen edition: Policy or provider, and its gates (spec 09 §13.1)."""

from typing import Final

import msgspec

from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates, parse_gates
from kubestow.config.flags import ParsedFlags
from kubestow.config.profile import ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions import CORE, edition_named
from kubestow.editions.edition import Edition
from kubestow.editions.flags import EDITION_FLAGS, AlgorithmOptions
from kubestow.errors import ConfigError

_LOCK_FIELDS: Final = {
    "lock-object-name": "resource_name",
    "lock-object-namespace": "resource_namespace",
}


class EditionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What was chosen: an edition by its gates, and what an edition that is not modern has."""

    gates: FeatureGates = DEFAULT_GATES
    algorithm: AlgorithmOptions = AlgorithmOptions()

    @property
    def edition(self) -> Edition:
        return self.gates.edition

    def profile(self) -> ProfileConfig:
        """The default profile of the edition, and its provider."""
        name = self.algorithm.scheduler_name
        if self.edition.is_modern or not self.edition.has_plugins:
            return ProfileConfig(scheduler_name=name)
        # Imported here, like every other edition: only when it is to run.
        from kubestow.editions.v1_20.profiles import default_profile

        return default_profile(
            self.gates, provider=self.algorithm.algorithm_provider, scheduler_name=name
        )


def edition_options(flags: ParsedFlags, default: Edition = CORE) -> EditionOptions:
    """What the flags say of an edition, or its options if they name none; raises ConfigError."""
    named = flags.text("compatibility")
    edition = edition_named(named) if named else default
    if edition.is_modern:
        for flag in EDITION_FLAGS:
            if flag.name in flags.given and flag.name != "compatibility":
                raise ConfigError(f"--{flag.name} needs --compatibility with an older version")
        return EditionOptions(gates=parse_gates(flags.texts("feature-gates"), edition))
    if not edition.has_plugins:
        for name in ("config", "write-config-to"):
            if flags.text(name):
                raise ConfigError(
                    f"--{name} is newer than {edition.version}; "
                    "give a Policy with --policy-config-file"
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
    gates = parse_gates(flags.texts("feature-gates"), edition)
    return EditionOptions(gates=gates, algorithm=algorithm)


def with_named_lock(config: SchedulerConfig, flags: ParsedFlags) -> SchedulerConfig:
    """The configuration with the name of the lock, where a flag of v1.9 gives it."""
    names = {field: flags.text(flag) for flag, field in _LOCK_FIELDS.items() if flag in flags.given}
    election = msgspec.structs.replace(config.leader_election, **names)
    return msgspec.structs.replace(config, leader_election=election)
