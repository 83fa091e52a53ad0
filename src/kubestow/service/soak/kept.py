"""How much everything in a process keeps: found by following references.

From a few roots all objects of this package are visited, and the size of every container is noted
under the class and the attribute that hold it. So a container is found that has no gauge of its
own, and one that is added later.

Only some entries of a large container are visited: it has as many as the cluster has pods or nodes,
or as a limit allows. The oldest ones are chosen, which hold the most if they grow with time.
"""

import sys
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from types import FunctionType, MethodType
from typing import Any, Final, NamedTuple, Protocol, TypeGuard, cast
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

import msgspec

# Entries of a larger container that are visited.
VISITED: Final = 16
_PACKAGE: Final = "kubestow."
_TABLES: Final = (dict, WeakKeyDictionary, WeakValueDictionary)
_LISTS: Final = (list, set, deque, WeakSet)


class Size(NamedTuple):
    """The entries of all containers of one name, and how many containers there are."""

    entries: int
    containers: int


class CacheInfo(NamedTuple):
    hits: int
    misses: int
    maxsize: int | None
    currsize: int


class CachedFunction(Protocol):
    """A function whose answers `functools` keeps."""

    def cache_info(self) -> CacheInfo: ...


def sizes(roots: Iterable[object]) -> dict[str, Size]:
    """The sizes of all containers, by `module.Class.attribute`."""
    found: dict[str, Size] = {}
    # What was visited is held: the number of an object that is freed is given to another one.
    visited: dict[int, object] = {}
    waiting: deque[tuple[str, Any]] = deque(("root", root) for root in roots)
    while waiting:
        name, value = waiting.popleft()
        if id(value) in visited:
            continue
        visited[id(value)] = value
        if is_container(value):
            entries, containers = found.get(name, (0, 0))
            found[name] = Size(entries + len(value), containers + 1)
        waiting.extend(_parts(name, value))
    return found


def module_tables() -> Iterator[tuple[str, Any]]:
    """The containers that are variables of modules, and functions that remember, by name."""
    yielded: set[int] = set()
    for module_name, module in sorted(sys.modules.items()):
        if not module_name.startswith(_PACKAGE):
            continue
        for name, value in vars(module).items():
            if name.startswith("__") or id(value) in yielded:
                continue
            if is_cached_function(value):
                if value.__module__ != module_name:
                    continue  # imported from there
            elif not is_container(value):
                continue
            yielded.add(id(value))
            yield f"{module_name.removeprefix(_PACKAGE)}.{name}", value


def is_cached_function(value: object) -> TypeGuard[CachedFunction]:
    # Much quicker than a check against the protocol.
    return hasattr(value, "cache_info") and not isinstance(value, type)


def is_container(value: object) -> TypeGuard[Collection[Any]]:
    """Whether it can grow."""
    return isinstance(value, (*_TABLES, *_LISTS))


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What is visited after this value."""
    if is_container(value):
        is_table = isinstance(value, Mapping)
        entries = cast("Mapping[Any, Any]", value).values() if is_table else value
        # As a list at once: another thread may change the container.
        yield from ((name, entry) for entry in list(islice(entries, VISITED)))
    elif isinstance(value, tuple):
        yield from ((name, part) for part in cast("tuple[Any, ...]", value))
    elif isinstance(value, MethodType):
        yield name, value.__self__
    elif isinstance(value, FunctionType):
        yield from ((name, cell.cell_contents) for cell in value.__closure__ or ())
    elif isinstance(value, partial):
        yield from ((name, part) for part in (value.func, *value.args))
    elif _is_ours(value):
        cls = cast("type[Any]", type(value))
        short = f"{cls.__module__.removeprefix(_PACKAGE)}.{cls.__qualname__}"
        yield from ((f"{short}.{attribute}", part) for attribute, part in _attributes(value))


def _is_ours(value: object) -> bool:
    """Whether it is an object of this package with parts that may change: API objects do not."""
    cls = type(value)
    return cls.__module__.startswith(_PACKAGE) and not isinstance(value, (type, msgspec.Struct))


def _attributes(value: object) -> Iterator[tuple[str, Any]]:
    own: Mapping[str, Any] = getattr(value, "__dict__", {})
    yield from own.items()
    for cls in type(value).__mro__:
        slots: str | Iterable[str] = cls.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            yield slot, getattr(value, slot, None)
