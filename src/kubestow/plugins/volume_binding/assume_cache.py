"""Volumes and claims with decisions that are not written yet (spec 07 §2.2).

Between the decision to bind a volume and the moment the watch shows it bound, other pods must not
get the same volume. So the decided object replaces the one in the store. It holds for exactly one
version of the stored object: the next version from the API server, bound or not, wins.

    store    pv-1 @41 (free)            pv-1 @41 (free)                  pv-1 @58 (bound)
    assumed  -            -- assume --> pv-1 @41 (for claim c) -- watch --> -
    get      free                       for claim c                      bound
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from kubestow.api.meta import ObjectMeta
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.cache.objects import ObjectStore
from kubestow.errors import PluginError

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)

# Called with what the cache shows now; None when the object is gone.
Watcher = Callable[[ObjectMeta, T | None], None]


class AssumeCache(Generic[T]):
    """A store of volumes or claims with an overlay of decided objects.

    `version` grows whenever what it shows may have changed.
    """

    def __init__(self, store: ObjectStore[T], resource: str) -> None:
        """`resource` is the plural that error texts use."""
        self._store = store
        self._resource = resource
        self.version = 0
        self._assumed: dict[tuple[str, str], T] = {}
        self._watchers: list[Watcher[T]] = []
        store.subscribe(self._after_change)

    def get(self, namespace: str, name: str) -> T | None:
        """The object with the decision about it; `namespace` is "" for volumes."""
        stored = self._store.get(namespace, name)
        return None if stored is None else self.shown(stored)

    def shown(self, stored: T) -> T:
        """What the cache shows in place of an object of the store."""
        if not self._assumed:
            return stored
        assumed = self._assumed.get(_key(stored.metadata))
        if assumed is not None and _version(assumed) == _version(stored):
            return assumed
        return stored

    def stored(self, namespace: str, name: str) -> T | None:
        """The object as last delivered by the informer."""
        return self._store.get(namespace, name)

    def shown_objects(self) -> list[T]:
        """All objects, each with the decision about it."""
        return [self.shown(stored) for stored in self._store.list()]

    def assumed(self) -> list[T]:
        """All decided objects that the informer has not delivered yet."""
        return list(self._assumed.values())

    def assume(self, decided: T) -> None:
        """Use a decided object instead of the stored one; PluginError if the versions differ."""
        key = _key(decided.metadata)
        stored = self._store.get(*key)
        if stored is None:
            raise PluginError(self.not_found(*key))
        if _version(stored) != _version(decided):
            raise PluginError(
                f'"{_path(*key)}" is out of sync '
                f"(stored: {_version(stored)}, assume: {_version(decided)})"
            )
        self._assumed[key] = decided
        self._notify(decided.metadata, decided)

    def restore(self, decided: T) -> None:
        """Drop the decided object, unless there is one for another version now."""
        key = _key(decided.metadata)
        assumed = self._assumed.get(key)
        if assumed is not None and _version(assumed) == _version(decided):
            del self._assumed[key]
            self._notify(decided.metadata, self._store.get(*key))

    def watch(self, watcher: Watcher[T]) -> None:
        """Call `watcher` whenever what the cache shows of an object may have changed."""
        self._watchers.append(watcher)

    def not_found(self, namespace: str, name: str) -> str:
        return f'{self._resource} "{_path(namespace, name)}" not found'

    def _after_change(self, old: T | None, new: T | None) -> None:
        changed = new if new is not None else old
        assert changed is not None
        key = _key(changed.metadata)
        assumed = self._assumed.get(key)
        if assumed is not None and (new is None or _version(new) != _version(assumed)):
            del self._assumed[key]
        self._notify(changed.metadata, None if new is None else self.shown(new))

    def _notify(self, meta: ObjectMeta, shown: T | None) -> None:
        self.version += 1
        for watcher in self._watchers:
            watcher(meta, shown)


def _key(meta: ObjectMeta) -> tuple[str, str]:
    return meta.namespace, meta.name


def _path(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def _version(api_object: PersistentVolume | PersistentVolumeClaim) -> str:
    return api_object.metadata.resource_version
