"""Which events wake the pods a plugin rejected: the hint map of a profile (spec 02 §7.1).

The queue and the informers only ever see the result, a flat list of registrations in the order of
the plugins. A plugin that says nothing on events has its pods woken by nearly everything; one that
says it needs none, by nothing.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kubestow.framework.events import (
    Action,
    ClusterEvent,
    EventRegistration,
    HintFunction,
    Registrations,
    Resource,
    on,
)
from kubestow.framework.plugin import EventPlugin, Plugin

EXTENDER: Final = "Extender"

# Only a plugin with one of these can reject a pod and so has to say what may help it.
_REJECTING_POINTS: Final = ("pre_enqueue", "pre_filter", "filter", "reserve", "permit")

# For a plugin that does not say which events help. VolumeAttachment and ResourceSlice are missing
# on purpose.
_DEFAULT_EVENTS: Final[Registrations] = tuple(
    on(resource, Action.ALL)
    for resource in (
        Resource.POD,
        Resource.NODE,
        Resource.PERSISTENT_VOLUME,
        Resource.PERSISTENT_VOLUME_CLAIM,
        Resource.CSI_NODE,
        Resource.CSI_DRIVER,
        Resource.CSI_STORAGE_CAPACITY,
        Resource.STORAGE_CLASS,
        Resource.RESOURCE_CLAIM,
        Resource.DEVICE_CLASS,
    )
)
_ANY_NODE_TAINT: Final = on(Resource.NODE, Action.UPDATE_NODE_TAINT)


class HintRegistration(NamedTuple):
    """One plugin's interest in one event; without a hint every such event counts as Queue."""

    event: ClusterEvent
    plugin: str
    hint: HintFunction | None


HintMap = Sequence[HintRegistration]


def build_hint_map(plugins: Iterable[Plugin], *, has_extenders: bool = False) -> HintMap:
    """The registrations of one profile, in the order of its plugins.

    Whatever a plugin's `events` raises aborts the start-up.
    """
    # Extenders come first. They cannot say which events help, so that nearly all do.
    hint_map = _registered(EXTENDER, _DEFAULT_EVENTS) if has_extenders else []
    for plugin in plugins:
        if can_reject(plugin):
            events = plugin.events() if isinstance(plugin, EventPlugin) else _DEFAULT_EVENTS
            hint_map += _registered(plugin.name, events)
    return tuple(hint_map)


def can_reject(plugin: Plugin) -> bool:
    return any(hasattr(plugin, point) for point in _REJECTING_POINTS)


def _registered(plugin: str, events: Registrations) -> list[HintRegistration]:
    return [
        HintRegistration(event, plugin, hint)
        for event, hint in (*events, *_automatic_taint_entry(events))
    ]


def _automatic_taint_entry(events: Registrations) -> Sequence[EventRegistration]:
    """What a plugin that waits for new nodes gets in addition.

    A new node may come with taints that are taken away only later. Pods this plugin rejected before
    may fit there then, so it hears of every taint change.
    """
    node_actions = Action.NONE
    for event, _ in events:
        if event.resource == Resource.NODE:
            node_actions |= event.action
    if Action.ADD in node_actions and Action.UPDATE_NODE_TAINT not in node_actions:
        return (_ANY_NODE_TAINT,)
    return ()
