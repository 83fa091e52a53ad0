"""Which events wake the pods a plugin rejected: the hint map of a profile (spec 02 §7.1).

The queue and explanations read only the result, a flat list of registrations in the order of the
plugins. A plugin without `events` is registered for nearly every event; one whose `events` returns
no registration, for no event.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, cast

from kubestow.errors import ConfigError
from kubestow.framework.answers import shown
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
from kubestow.framework.profile import plugin_name

EXTENDER: Final = "Extender"

# Only a plugin with one of these can reject a pod and so needs registrations.
_REJECTING_POINTS: Final = ("pre_enqueue", "pre_filter", "filter", "reserve", "permit")

# For a plugin without `events`. VolumeAttachment and ResourceSlice are missing on purpose.
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
    """One plugin's registration for one event; without a hint every such event counts as Queue."""

    event: ClusterEvent
    plugin: str
    hint: HintFunction | None


HintMap = Sequence[HintRegistration]


def build_hint_map(
    plugins: Iterable[Plugin], *, has_extenders: bool = False, adds_taint_events: bool = True
) -> HintMap:
    """The registrations of one profile, in the order of its plugins.

    `adds_taint_events`: those for new nodes include changes of taints (§7.1; not since v1.37).
    A plugin whose `events` raises or returns anything else aborts the start-up: ConfigError.
    """
    # Extenders come first. They cannot register events, so they get the default ones.
    registered: list[tuple[str, Registrations]] = []
    if has_extenders:
        registered.append((EXTENDER, _DEFAULT_EVENTS))
    for plugin in plugins:
        if can_reject(plugin):
            events = _events_of(plugin) if isinstance(plugin, EventPlugin) else _DEFAULT_EVENTS
            registered.append((plugin.name, events))
    return tuple(
        HintRegistration(event, name, hint)
        for name, events in registered
        for event, hint in (*events, *(_automatic_taint_entry(events) if adds_taint_events else ()))
    )


def _events_of(plugin: EventPlugin) -> Registrations:
    what = f'registering events of plugin "{plugin_name(plugin)}"'
    try:
        events = tuple(plugin.events())
    except Exception as error:  # A plugin of a user may raise anything.
        raise ConfigError(f"{what}: {type(error).__name__}: {error}") from error
    # The declared type is not trusted: a plugin of a user may not have been type-checked.
    for entry in cast(tuple[object, ...], events):
        if not isinstance(entry, EventRegistration):
            expected = "expected registrations made by on(resource, action, hint)"
            raise ConfigError(f"{what}: found {shown(entry)}, {expected}")
    return events


def can_reject(plugin: Plugin) -> bool:
    return any(hasattr(plugin, point) for point in _REJECTING_POINTS)


def _automatic_taint_entry(events: Registrations) -> Sequence[EventRegistration]:
    """The additional registration of a plugin that is registered for new nodes.

    A new node may have taints that are removed only later. Pods that this plugin rejected may fit
    there then, so every taint change counts.
    """
    node_actions = Action.NONE
    for event, _ in events:
        if event.resource == Resource.NODE:
            node_actions |= event.action
    if Action.ADD in node_actions and Action.UPDATE_NODE_TAINT not in node_actions:
        return (_ANY_NODE_TAINT,)
    return ()
