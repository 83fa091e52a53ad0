"""Samples the main thread's stack for flame graphs.

A thread of its own takes about a thousand samples a second. The result is in the folded form that
flame graph tools read: one line per stack, outermost call first, with its count.
"""

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from types import FrameType, TracebackType

_INTERVAL_S = 0.001


class SamplingProfiler:
    def __init__(self) -> None:
        self._stacks: Counter[str] = Counter()
        self._is_stopped = threading.Event()
        self._target = threading.get_ident()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    @property
    def sample_count(self) -> int:
        return self._stacks.total()

    def folded(self) -> str:
        """`outer;inner;innermost count`, a line per distinct stack."""
        return "".join(f"{stack} {count}\n" for stack, count in self._stacks.most_common())

    def __enter__(self) -> "SamplingProfiler":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_stopped.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._is_stopped.wait(_INTERVAL_S):
            # The only way to read another thread's stack; documented despite its private name.
            frame = sys._current_frames().get(self._target)  # pyright: ignore[reportPrivateUsage]
            if frame is not None:
                self._stacks[";".join(reversed(list(_names(frame))))] += 1


def _names(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        yield f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_qualname}"
        frame = frame.f_back
