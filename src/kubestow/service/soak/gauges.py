"""What is read of the process during a soak: its memory, and the sizes of what it keeps.

The limits are those of docs/caches.md.
"""

import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, Protocol, runtime_checkable

import msgspec

from kubestow.cluster.events import BUFFER_MAX
from kubestow.index.tracked import LABEL_COLUMNS_MAX, TRACKED_MAX, LabelColumns, TrackedArrays
from kubestow.service.run import SchedulerProcess

_MEMORY: Final = Path("/proc/self/statm")
_MIB: Final = 1024 * 1024


class KeptSize(msgspec.Struct, frozen=True):
    """How full something is that is kept."""

    name: str
    size: int
    limit: int | None  # None: as large as the cluster, or as the work in progress


class _CacheInfo(NamedTuple):
    hits: int
    misses: int
    maxsize: int | None
    currsize: int


@runtime_checkable
class _Cached(Protocol):
    """A function whose answers `functools` keeps."""

    def cache_info(self) -> _CacheInfo: ...


def rss_mib() -> float:
    """The memory of this process now; its peak where the system does not say."""
    try:
        pages = int(_MEMORY.read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return pages * resource.getpagesize() / _MIB


def containers(process: SchedulerProcess) -> list[KeptSize]:
    """Everything that is kept by one scheduler and by the functions it calls."""
    scheduler, recorder = process.scheduler, process.recorder.statistics()
    cache, queue = scheduler.cache.statistics(), scheduler.queue.statistics()
    found = [
        KeptSize("cache: nodes", cache.nodes, None),
        KeptSize("cache: pods", cache.pods, None),
        KeptSize("cache: assumed pods", cache.assumed_pods, None),
        KeptSize("queue: in-flight events", queue.in_flight_events, None),
        KeptSize("queue: nominated pods", queue.nominated, None),
        KeptSize("events to be sent", recorder.waiting_count, BUFFER_MAX),
        KeptSize("event series", recorder.series_count, None),
        KeptSize("tracked arrays", len(scheduler.snapshot.derived(TrackedArrays)), TRACKED_MAX),
        KeptSize("label columns", len(scheduler.snapshot.derived(LabelColumns)), LABEL_COLUMNS_MAX),
    ]
    return [*found, *_cached_functions()]


def _cached_functions() -> Iterator[KeptSize]:
    for module_name, module in sorted(sys.modules.items()):
        if not module_name.startswith("kubestow."):
            continue
        for name, value in sorted(vars(module).items()):
            if isinstance(value, type) or not isinstance(value, _Cached):
                continue
            if value.__module__ != module_name:
                continue  # imported from there
            info = value.cache_info()
            short = module_name.removeprefix("kubestow.")
            yield KeptSize(f"{short}.{name}", info.currsize, info.maxsize)
