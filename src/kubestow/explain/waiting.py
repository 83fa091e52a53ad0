"""What a pod waits for: the plugin that keeps it out of the queue, or events."""

from collections.abc import Collection, Iterable

from kubestow.api.pod import Pod
from kubestow.explain.cluster import StillCluster
from kubestow.explain.explanation import AwaitedEvent
from kubestow.framework.events import Action, ClusterEvent
from kubestow.framework.hints import HintMap
from kubestow.framework.profile import Profile, plugin_name
from kubestow.framework.status import Status


def awaited_events(hint_map: HintMap, plugins: Collection[str]) -> tuple[AwaitedEvent, ...]:
    """The events that these plugins are registered for, in the order of the registrations.

    Each plugin's hint then examines the objects: not every such event ends the wait.
    """
    found: dict[tuple[str, str], dict[str, None]] = {}
    for registration in hint_map:
        if registration.plugin in plugins:
            event = registration.event
            for action in _action_names(event):
                found.setdefault((event.resource, action), {})[registration.plugin] = None
    return tuple(
        AwaitedEvent(resource=resource, action=action, plugins=tuple(names))
        for (resource, action), names in found.items()
    )


def _action_names(event: ClusterEvent) -> Iterable[str]:
    actions = event.action
    if actions & Action.UPDATE == Action.UPDATE:
        yield from _named(event.resource, actions & ~Action.UPDATE)
        yield "Update"
    else:
        yield from _named(event.resource, actions)


def _named(resource: str, actions: Action) -> Iterable[str]:
    for action in actions:
        yield ClusterEvent(resource, action).label.removeprefix(resource)


def gate_of(profile: Profile, pod: Pod) -> Status | None:
    """The status of the first plugin that holds the pod back; None if it may be tried."""
    for plugin in profile.pre_enqueue:
        try:
            status = plugin.pre_enqueue(pod)
        except Exception as error:  # A plugin of a user may raise anything; its pod waits.
            status = Status.from_error(error)
        if status is not None and not status.is_success:
            return status.with_plugin(plugin_name(plugin))
    return None


def may_try(cluster: StillCluster, pod: Pod) -> bool:
    """Whether a profile places the pod, and no plugin of it holds the pod back."""
    profile = cluster.profile_of(pod)
    return profile is not None and gate_of(profile, pod) is None
