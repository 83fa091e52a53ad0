"""What a page shows of a scheduler that does not change: versions, profiles, configuration."""

from collections.abc import Iterable
from typing import Final

from kubestow import __version__
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.config.written import write_config
from kubestow.engine.scheduler import Scheduler
from kubestow.framework.profile import Profile, plugin_name
from kubestow.web.picture import PageFacts
from kubestow.web.protocol import Mode, ProfilePlugin, ProfileState
from kubestow.web.routes import Actions


def page_facts(
    mode: Mode,
    scheduler: Scheduler,
    config: SchedulerConfig,
    gates: FeatureGates,
    actions: Actions | None = None,
) -> PageFacts:
    return PageFacts(
        mode=mode,
        version=__version__,
        upstream=gates.edition.release,
        profiles=profile_states(scheduler.profiles.values()),
        config=write_config(config, gates),
        actions=() if actions is None else actions.names,
    )


# Attributes of a profile, and the extension points as upstream writes them, in their order.
_POINTS: Final = (
    ("pre_enqueue", "PreEnqueue"),
    ("pre_filter", "PreFilter"),
    ("filter", "Filter"),
    ("post_filter", "PostFilter"),
    ("pre_score", "PreScore"),
    ("score", "Score"),
    ("reserve", "Reserve"),
    ("permit", "Permit"),
    ("pre_bind", "PreBind"),
    ("bind", "Bind"),
    ("post_bind", "PostBind"),
)


def profile_states(profiles: Iterable[Profile]) -> tuple[ProfileState, ...]:
    return tuple(_profile_state(profile) for profile in profiles)


def _profile_state(profile: Profile) -> ProfileState:
    sort = plugin_name(profile.queue_sort)
    points: dict[str, list[str]] = {sort: ["QueueSort"]}
    for attribute, point in _POINTS:
        for plugin in getattr(profile, attribute):
            points.setdefault(plugin_name(plugin), []).append(point)
    return ProfileState(
        name=profile.name,
        plugins=tuple(
            ProfilePlugin(name=name, points=tuple(at), weight=profile.weights.get(name, 0))
            for name, at in points.items()
        ),
    )
