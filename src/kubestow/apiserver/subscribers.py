"""Who is told of the changes of one resource: watches, and observers inside the process.

A change is offered to the watches that are open and read pods of its traits (`traits`). Which these
are is kept by traits, of which few combinations occur.
"""

from collections.abc import Callable
from typing import Final

from kubestow.apiserver.store import Change
from kubestow.apiserver.traits import EXISTS, traits_of
from kubestow.apiserver.watch import Watch, WatchEvent, event_of
from kubestow.cluster.resources import PODS, ApiResource

OnEvent = Callable[[WatchEvent], None]


class Subscribers:
    """The watches and observers of one resource, in the order in which they began."""

    def __init__(self, resource: ApiResource, is_open: Callable[[Watch], bool]) -> None:
        """`is_open`: whether a watch is offered changes now; see `choose_again`."""
        self.watches: tuple[Watch, ...] = ()
        self._is_open = is_open
        self._has_traits: Final = resource == PODS
        self._observers: tuple[OnEvent, ...] = ()
        # By traits.
        self._chosen: dict[int, tuple[Watch, ...]] = {}

    def add(self, watch: Watch) -> None:
        watch.on_choice = self.choose_again
        self.watches = (*self.watches, watch)
        self.choose_again()

    def remove(self, watch: Watch) -> None:
        self.watches = tuple(each for each in self.watches if each is not watch)
        self.choose_again()

    def observe(self, on_event: OnEvent) -> None:
        self._observers = (*self._observers, on_event)

    def choose_again(self) -> None:
        """Watches were opened or closed, or read pods of other traits than before."""
        self._chosen.clear()

    def is_read(self, watch: Watch, change: Change) -> bool:
        """Whether the object of a change has traits that the watch reads."""
        return bool(watch.traits & (traits_of(change) if self._has_traits else EXISTS))

    def publish(self, change: Change) -> None:
        """Pass a change on: first to observers, then to watches."""
        if not self.watches and not self._observers:
            return
        event = event_of(change)
        for on_event in self._observers:
            on_event(event)
        traits = traits_of(change) if self._has_traits else EXISTS
        watches = self._chosen.get(traits)
        if watches is None:
            watches = self._chosen[traits] = tuple(
                watch for watch in self.watches if watch.traits & traits and self._is_open(watch)
            )
        for watch in watches:
            watch.offer(change, event)
