"""What is read of the process during a soak: its memory, and the sizes of what it keeps.

The limits are those of docs/caches.md.
"""

import asyncio
import os
import resource
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from kubestow.service.soak.kept import is_cached_function, module_tables, sizes

_MEMORY: Final = Path("/proc/self/statm")
_FILES: Final = Path("/proc/self/fd")
_MIB: Final = 1024 * 1024


class KeptSize(msgspec.Struct, frozen=True):
    """How full something is that is kept."""

    size: int
    limit: int | None = None  # None: as large as the cluster, or as the work in progress


def rss_mib() -> float:
    """The memory of this process now; its peak where the system does not say."""
    try:
        pages = int(_MEMORY.read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return pages * resource.getpagesize() / _MIB


class Containers:
    """Everything that is kept by some objects, by modules and by the event loop."""

    def __init__(self, roots: Sequence[object], limits: Mapping[str, int]) -> None:
        """`limits` are those of one container each, by name."""
        self._roots = roots
        self._limits = limits
        self._module_count = 0
        self._tables: list[tuple[str, Any]] = []

    def sizes(self) -> dict[str, KeptSize]:
        """The present sizes, by name."""
        found: dict[str, KeptSize] = {}
        for name, size in sizes(self._roots).items():
            limit = self._limits.get(name)
            found[name] = KeptSize(size.entries, None if limit is None else limit * size.containers)
        for name, table in self._module_tables():
            if is_cached_function(table):
                info = table.cache_info()
                found[name] = KeptSize(info.currsize, info.maxsize)
            else:
                found[name] = KeptSize(len(table))
        found["tasks of the event loop"] = KeptSize(len(asyncio.all_tasks()))
        if _FILES.is_dir():
            found["open files"] = KeptSize(len(os.listdir(_FILES)))
        return found

    def _module_tables(self) -> list[tuple[str, Any]]:
        if len(sys.modules) != self._module_count:
            self._module_count = len(sys.modules)
            self._tables = list(module_tables())
        return self._tables
