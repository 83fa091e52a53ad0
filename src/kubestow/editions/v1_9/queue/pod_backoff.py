"""How long a pod waits after a failed attempt in v1.9 (spec 02 §19.2)."""

from typing import Final

INITIAL_S: Final = 1.0
MAX_S: Final = 60.0


class _Entry:
    __slots__ = ("is_waiting", "last_use_s", "next_wait_s")

    def __init__(self) -> None:
        self.next_wait_s = INITIAL_S
        self.last_use_s = 0.0
        self.is_waiting = False


class PodBackoff:
    """Waits by pod, `namespace/name`. Time is an argument.

    The last use is the start of a wait, so the entry of a pod that waited `MAX_S` is dropped by its
    next failure, and the pod waits `INITIAL_S` again.
    """

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def collect(self, now_s: float) -> None:
        """Drop the entries of pods that failed longer than `MAX_S` ago."""
        for key, entry in list(self._entries.items()):
            if now_s - entry.last_use_s > MAX_S:
                del self._entries[key]

    def begin_wait(self, key: str, now_s: float) -> float | None:
        """How long the pod has to wait; None if it waits already, and needs no second retry."""
        entry = self._entries.setdefault(key, _Entry())
        entry.last_use_s = now_s
        if entry.is_waiting:
            return None
        entry.is_waiting = True
        wait_s = entry.next_wait_s
        entry.next_wait_s = min(2 * wait_s, MAX_S)
        return wait_s

    def end_wait(self, key: str) -> None:
        entry = self._entries.get(key)
        if entry is not None:
            entry.is_waiting = False
