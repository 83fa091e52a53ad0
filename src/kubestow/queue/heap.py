"""A binary heap whose elements can be found, replaced and removed by key (spec 02 §2.4).

The order in which equal elements leave the heap is part of the scheduler's behaviour, so the sift
rules are written out here: those of `heapq` differ. The sort keys are in a list of their own beside
the slots: comparing two elements is comparing list items.

Invariants: `_sort_keys[i]` belongs to `_slots[i]`; `_slots[i].index == i`; `_by_key` holds exactly
the slots of the list. A sort key is computed when its element is added or updated, and only then.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, Protocol, TypeVar

from kubestow.errors import QueueError

OBJECT_NOT_FOUND: Final = "object not found"
HEAP_IS_EMPTY: Final = "heap is empty"

T = TypeVar("T")


class SortKey(Protocol):
    """Anything with an order: a tuple of numbers, or an object with `<`."""

    def __lt__(self, other: Any, /) -> bool: ...


class KeyedHeap(Generic[T]):
    """A min-heap over sort keys, addressed by element keys.

    `count_changed` is called with +1 for a new key and -1 for a removed one.
    """

    def __init__(
        self,
        *,
        sort_key: Callable[[T], SortKey],
        count_changed: Callable[[int], None] | None = None,
    ) -> None:
        self._sort_key = sort_key
        self._count_changed = count_changed
        self._sort_keys: list[SortKey] = []
        self._slots: list[_Slot[T]] = []
        self._by_key: dict[str, _Slot[T]] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, key: str) -> bool:
        return key in self._by_key

    def __iter__(self) -> Iterator[T]:
        """All elements, in the order of the heap's list."""
        return (slot.element for slot in self._slots)

    def get(self, key: str) -> T | None:
        slot = self._by_key.get(key)
        return None if slot is None else slot.element

    def peek(self) -> T | None:
        return self._slots[0].element if self._slots else None

    def add_or_update(self, key: str, element: T) -> bool:
        """Insert the element or replace the one under its key; True if it was inserted."""
        sort_key = self._sort_key(element)
        slot = self._by_key.get(key)
        if slot is not None:
            slot.element = element
            self._sort_keys[slot.index] = sort_key
            self._settle(slot.index)
            return False
        index = len(self._slots)
        slot = self._by_key[key] = _Slot(key, element, index)
        self._sort_keys.append(sort_key)
        self._slots.append(slot)
        self._sift_up(index)
        if self._count_changed is not None:
            self._count_changed(1)
        return True

    def pop(self) -> T:
        if not self._slots:
            raise QueueError(HEAP_IS_EMPTY)
        return self._remove_at(0)

    def pop_if_any(self) -> T | None:
        """The first element, None if there is none."""
        return self._remove_at(0) if self._slots else None

    def delete(self, key: str) -> T:
        slot = self._by_key.get(key)
        if slot is None:
            raise QueueError(OBJECT_NOT_FOUND)
        return self._remove_at(slot.index)

    def discard(self, key: str) -> T | None:
        """Delete the element if there is one."""
        slot = self._by_key.get(key)
        return None if slot is None else self._remove_at(slot.index)

    def _remove_at(self, index: int) -> T:
        """Move the last element to the index and restore the order."""
        removed = self._slots[index]
        last = self._slots.pop()
        last_sort_key = self._sort_keys.pop()
        if removed is not last:
            last.index = index
            self._slots[index] = last
            self._sort_keys[index] = last_sort_key
            self._settle(index)
        del self._by_key[removed.key]
        if self._count_changed is not None:
            self._count_changed(-1)
        return removed.element

    def _settle(self, index: int) -> None:
        if not self._sift_down(index):
            self._sift_up(index)

    # Both loops shift the others and write the sifted element once, at its final place. That gives
    # the same list as the swaps of the specification with half the writes.

    def _sift_up(self, start: int) -> None:
        sort_keys, slots = self._sort_keys, self._slots
        sort_key, sifted, index = sort_keys[start], slots[start], start
        while index > 0:
            parent = (index - 1) >> 1
            parent_sort_key = sort_keys[parent]
            if not sort_key < parent_sort_key:
                break
            slot = slots[parent]
            sort_keys[index] = parent_sort_key
            slots[index] = slot
            slot.index = index
            index = parent
        if index != start:
            sort_keys[index] = sort_key
            slots[index] = sifted
            sifted.index = index

    def _sift_down(self, start: int) -> bool:
        """Move the element down to its place; False if it stays where it is."""
        sort_keys, slots = self._sort_keys, self._slots
        count = len(slots)
        sort_key, sifted, index = sort_keys[start], slots[start], start
        while (child := 2 * index + 1) < count:
            child_sort_key = sort_keys[child]
            right = child + 1
            if right < count and sort_keys[right] < child_sort_key:
                child = right
                child_sort_key = sort_keys[right]
            if not child_sort_key < sort_key:
                break
            slot = slots[child]
            sort_keys[index] = child_sort_key
            slots[index] = slot
            slot.index = index
            index = child
        if index == start:
            return False
        sort_keys[index] = sort_key
        slots[index] = sifted
        sifted.index = index
        return True


class _Slot(Generic[T]):
    __slots__ = ("element", "index", "key")

    def __init__(self, key: str, element: T, index: int) -> None:
        self.key = key
        self.element = element
        self.index = index
