"""Which plugins are registered for which event, by bit masks (spec 02 §7.1, §8, §18).

Every plugin name gets a bit. The hints to call for an event and a pod depend only on the pod's
profile and its rejectors: one `Audience` per event and one `Listeners` per set of rejectors are
computed once and kept. Registrations are fixed for the life of the queue.

Not here: calling hint functions (`hint_call`), what follows from their answers (`moves`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kubestow.framework.events import ClusterEvent, HintFunction
from kubestow.framework.hints import HintRegistration


class Interest:
    """The hint maps of all profiles, by event."""

    def __init__(self, hint_maps: Mapping[str, Sequence[HintRegistration]]) -> None:
        self._hint_maps = hint_maps
        self._bits: dict[str, int] = {}
        self._audiences: dict[ClusterEvent, Audience] = {}
        self._events_of: dict[str, tuple[ClusterEvent, ...]] = _events_by_plugin(hint_maps)

    def mask_of(self, plugins: Iterable[str]) -> int:
        """The plugins as a set of bits; a plugin without registrations gets one, too."""
        mask = 0
        for plugin in plugins:
            mask |= self._bit_of(plugin)
        return mask

    def events_of(self, plugin: str) -> tuple[ClusterEvent, ...]:
        """The events the plugin registered in any profile."""
        return self._events_of.get(plugin, ())

    def audience_of(self, event: ClusterEvent) -> "Audience":
        audience = self._audiences.get(event)
        if audience is None:
            audience = self._audiences[event] = self._gather(event)
        return audience

    def _bit_of(self, plugin: str) -> int:
        bit = self._bits.get(plugin)
        if bit is None:
            bit = self._bits[plugin] = 1 << len(self._bits)
        return bit

    def _gather(self, event: ClusterEvent) -> "Audience":
        profiles = {
            scheduler_name: _ProfileAudience(
                tuple(
                    Listener(self._bit_of(plugin), plugin, hint)
                    for registered, plugin, hint in registrations
                    if registered.matches(event)
                )
            )
            for scheduler_name, registrations in self._hint_maps.items()
        }
        gating_plugins = frozenset(
            plugin
            for plugin, events in self._events_of.items()
            if any(registered.matches(event) for registered in events)
        )
        return Audience(event, profiles, gating_plugins)


class Listener(NamedTuple):
    """A plugin registered for an event; without a hint its answer is always Queue."""

    bit: int
    plugin: str
    hint: HintFunction | None


class Listeners:
    """The listeners of an event that rejected a pod, in the order of registration."""

    __slots__ = ("all", "always")

    def __init__(self, listeners: tuple[Listener, ...]) -> None:
        self.all = listeners
        # The first listener without a hint: its answer is Queue.
        self.always = next((listener for listener in listeners if listener.hint is None), None)


class Audience:
    """All listeners of one event."""

    __slots__ = ("_gating_plugins", "_profiles", "event", "is_interesting", "is_wildcard", "label")

    def __init__(
        self,
        event: ClusterEvent,
        profiles: "dict[str, _ProfileAudience]",
        gating_plugins: frozenset[str],
    ) -> None:
        self.event = event
        self.label = event.label
        self.is_wildcard = event.is_wildcard
        # Spec 02 §8: an event without registrations has no effect.
        self.is_interesting = event.is_wildcard or any(
            profile.listeners for profile in profiles.values()
        )
        self._profiles = profiles
        self._gating_plugins = gating_plugins

    def concerns_gated_by(self, plugin: str) -> bool:
        """Whether the event may move pods that this plugin gates (spec 02 §9.6)."""
        return self.is_wildcard or plugin in self._gating_plugins

    def may_help(self, scheduler_name: str, rejector_mask: int) -> bool:
        """Whether the verdict on such a pod can differ from skip."""
        if self.is_wildcard or not rejector_mask:
            return True
        profile = self._profiles.get(scheduler_name)
        return profile is None or bool(profile.mask & rejector_mask)

    def listeners_of(self, scheduler_name: str, rejector_mask: int) -> Listeners | None:
        """The listeners to ask about such a pod; None if its profile is not known."""
        profile = self._profiles.get(scheduler_name)
        return None if profile is None else profile.among(rejector_mask)


class _ProfileAudience:
    """The part of an audience that belongs to one profile."""

    __slots__ = ("_among", "listeners", "mask")

    def __init__(self, listeners: tuple[Listener, ...]) -> None:
        self.listeners = listeners
        self.mask = 0
        for listener in listeners:
            self.mask |= listener.bit
        self._among: dict[int, Listeners] = {}

    def among(self, rejector_mask: int) -> Listeners:
        mask = self.mask & rejector_mask
        found = self._among.get(mask)
        if found is None:
            found = self._among[mask] = Listeners(
                tuple(listener for listener in self.listeners if listener.bit & mask)
            )
        return found


def _events_by_plugin(
    hint_maps: Mapping[str, Sequence[HintRegistration]],
) -> dict[str, tuple[ClusterEvent, ...]]:
    # A dict as an ordered set: profiles often register the same event for the same plugin.
    events: dict[str, dict[ClusterEvent, None]] = {}
    for registrations in hint_maps.values():
        for event, plugin, _ in registrations:
            events.setdefault(plugin, {})[event] = None
    return {plugin: tuple(registered) for plugin, registered in events.items()}
