"""How groups are scheduled in another way than upstream: read from the profiles, in one place."""

from collections.abc import Mapping
from typing import Final

from kubestow.api.group import AS_UPSTREAM, GangOptions
from kubestow.config.feature_gates import FeatureGates
from kubestow.errors import ConfigError
from kubestow.framework.profile import Profile
from kubestow.plugins.gangs import Gangs

# Without them there are no groups, or no gangs among them.
NEEDED_GATES: Final = ("GenericWorkload", "GangScheduling")
TOPOLOGY_GATE: Final = "TopologyAwareWorkloadScheduling"


def gang_options(profiles: Mapping[str, Profile], gates: FeatureGates) -> GangOptions:
    """The options of the plugin Gangs; without it, upstream's behaviour.

    Raises ConfigError if gates that it needs are off, or if profiles differ: they share the queue,
    the cache and its groups.
    """
    by_name = {name: _options_of(profile) for name, profile in profiles.items()}
    (first_name, first), *others = by_name.items()
    for name, options in others:
        if options != first:
            raise ConfigError(
                f'the plugin {Gangs.name} must be the same in all profiles; "{name}" has another '
                f'configuration of it than "{first_name}"'
            )
    needed_gates = (*NEEDED_GATES, TOPOLOGY_GATE) if first.topology_levels else NEEDED_GATES
    missing = [gate for gate in needed_gates if not gates.enabled(gate)]
    if first is not AS_UPSTREAM and missing:
        needed = ",".join(f"{gate}=true" for gate in missing)
        raise ConfigError(
            f"the plugin {Gangs.name} is of no use as long as groups of pods are switched off; "
            f"add --feature-gates={needed}"
        )
    return first


def _options_of(profile: Profile) -> GangOptions:
    plugin = profile.plugins.get(Gangs.name)
    return plugin.options if isinstance(plugin, Gangs) else AS_UPSTREAM
