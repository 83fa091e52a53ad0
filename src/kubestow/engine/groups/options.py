"""How groups are scheduled in another way than upstream: read from the profiles, in one place."""

from collections.abc import Mapping

from kubestow.api.group import AS_UPSTREAM, GangOptions
from kubestow.errors import ConfigError
from kubestow.framework.profile import Profile
from kubestow.plugins.gangs import Gangs


def gang_options(profiles: Mapping[str, Profile]) -> GangOptions:
    """The options of the plugin Gangs; without it, upstream's behaviour.

    Raises ConfigError if profiles differ: they share the queue, the cache and its groups.
    """
    by_name = {name: _options_of(profile) for name, profile in profiles.items()}
    (first_name, first), *others = by_name.items()
    for name, options in others:
        if options != first:
            raise ConfigError(
                f'the plugin {Gangs.name} must be the same in all profiles; "{name}" has another '
                f'configuration of it than "{first_name}"'
            )
    return first


def _options_of(profile: Profile) -> GangOptions:
    plugin = profile.plugins.get(Gangs.name)
    return plugin.options if isinstance(plugin, Gangs) else AS_UPSTREAM
