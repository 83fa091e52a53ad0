"""Which pods an event concerns, asked once per event and plugin (spec 12 §3.5).

A hint is asked for every pod that a plugin rejected. Where the plugin can name the few pods that an
event concerns, the others are not looked at. Needs the gate SchedulerPreQueueingHints.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from kubestow.api.pod import Pod
from kubestow.framework.events import ClusterEvent
from kubestow.queue.metrics import QueueMetrics

log = logging.getLogger(__name__)

IsConcerned = Callable[[Pod], bool]
# Gets the object before and after the event (None where there is none); None: all pods.
FindConcerned = Callable[[Any, Any], IsConcerned | None]


class Narrowing(NamedTuple):
    """A plugin's registration for an event."""

    event: ClusterEvent
    find: FindConcerned


@runtime_checkable
class NarrowingPlugin(Protocol):
    """A plugin that can say which pods an event concerns."""

    @property
    def name(self) -> str: ...

    def narrowings(self) -> Sequence[Narrowing]: ...


class Narrowings:
    """What all plugins can say about events. One that several profiles have is asked once."""

    def __init__(self, plugins: Iterable[object], metrics: QueueMetrics) -> None:
        by_name = {plugin.name: plugin for plugin in plugins if isinstance(plugin, NarrowingPlugin)}
        self._all = [
            (name, narrowing)
            for name, plugin in by_name.items()
            for narrowing in plugin.narrowings()
        ]
        self._metrics = metrics

    def concerned_by(self, event: ClusterEvent, old: object, new: object) -> IsConcerned | None:
        """What holds for the pods that the event concerns; None if it may concern any pod."""
        asked = [] if event.is_wildcard else self._asked_about(event)
        found: list[IsConcerned] = []
        for plugin, narrowing in asked:
            is_concerned = _find(plugin, narrowing, old, new)
            self._metrics.event_narrowed(plugin, to_all=is_concerned is None)
            if is_concerned is not None:
                found.append(is_concerned)
        if not asked or len(found) < len(asked):
            return None
        return lambda pod: any(is_concerned(pod) for is_concerned in found)

    def _asked_about(self, event: ClusterEvent) -> list[tuple[str, Narrowing]]:
        return [each for each in self._all if each[1].event.matches(event)]


def _find(plugin: str, narrowing: Narrowing, old: object, new: object) -> IsConcerned | None:
    try:
        return narrowing.find(old, new)
    except Exception:  # A useless attempt is better than a pod that is lost.
        log.exception("plugin %s cannot say which pods an event concerns", plugin)
        return None
