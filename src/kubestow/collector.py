"""How Python's garbage collector is set for a process that holds a cluster in memory."""

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

# Collections happen after this many more objects were made than freed (youngest generation), and
# older generations are looked at after so many collections of the one before.
GC_THRESHOLDS: Final = (20_000, 20, 50)


def settle() -> None:
    """Keep the garbage collector from walking over what stays.

    After the first lists there are millions of objects that live as long as the process: pods,
    nodes, what was derived from them. The collector would go over all of them again and again, and
    for a large cluster that takes longer than a hundred scheduling cycles. Frozen, they are never
    looked at again. An attempt makes some hundred objects and leaves none in a cycle, so the young
    ones need not be looked at often either.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


@contextmanager
def settled() -> Generator[None, None, None]:
    """Settled for a while."""
    thresholds = gc.get_threshold()
    settle()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)


@contextmanager
def paused() -> Generator[None, None, None]:
    """Not collecting for a while.

    Nothing that is loaded becomes rubbish, and to look for it again and again as it grows takes as
    long as loading it.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
