"""How Python's garbage collector is set for a process that holds a cluster in memory."""

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

# Collections happen after this many more objects were made than freed (youngest generation), and
# older generations are collected after this many collections of the one before.
GC_THRESHOLDS: Final = (50_000, 20, 50)
# The same where `collect_if_due` is called: it collects first, unless it was not called for long.
_LATE_THRESHOLDS: Final = (4 * GC_THRESHOLDS[0], *GC_THRESHOLDS[1:])
# For a simulation: its pauses delay nothing, and each object that stays is gone over anyway. It
# makes next to no reference cycles; what they can hold until a collection is still limited.
SIMULATION_THRESHOLDS: Final = (500_000, 20, 50)


def settle() -> None:
    """Exclude all objects that exist now from garbage collection, and collect less often.

    After the first lists there are millions of objects that live as long as the process: pods,
    nodes, what was derived from them. The collector would go over all of them again and again, and
    for a large cluster that takes longer than a hundred scheduling cycles. Frozen objects are never
    scanned again. An attempt makes some hundred objects and leaves none in a reference cycle, so
    the young generation need not be collected often either.

    The caller has to call `collect_if_due` from time to time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_LATE_THRESHOLDS)


def collect_if_due() -> None:
    """Collect if `GC_THRESHOLDS` say so. Else the cycle of some pod has to wait for a collection of
    what was made between cycles, as of objects that watches deliver."""
    young, middle, old = gc.get_count()
    most_young, most_middle, most_old = GC_THRESHOLDS
    if young > most_young:
        gc.collect(2 if old > most_old else 1 if middle > most_middle else 0)


@contextmanager
def settled(
    thresholds: tuple[int, int, int] = GC_THRESHOLDS,
) -> Generator[None, None, None]:
    """`settle` for the length of a `with` block.

    Garbage that exists already is left alone until the end of the block: looking for it takes as
    long as going over all objects, and much is simulated in less time than that.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.collect(0)  # of nothing: what was made before no longer counts towards the first threshold
    gc.set_threshold(*thresholds)
    try:
        yield
    finally:
        # Also what the block has made joins the oldest generation, as after a full collection.
        gc.freeze()
        gc.unfreeze()
        gc.collect(0)
        gc.set_threshold(*before)


@contextmanager
def paused() -> Generator[None, None, None]:
    """No garbage collection for the length of a `with` block.

    For loading objects: none of them becomes garbage, and scanning them again and again takes as
    long as loading them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
