"""Which events a waiting pod is tried again after."""

from collections.abc import Collection, Iterable

from kubestow.explain.explanation import AwaitedEvent
from kubestow.framework.events import Action, ClusterEvent
from kubestow.framework.hints import HintMap


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
