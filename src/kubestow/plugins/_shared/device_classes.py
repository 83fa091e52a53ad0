"""Which extended resources are served by devices: resource name → device class (spec 05 §8.3)."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from kubestow.api.device import DeviceClass
from kubestow.api.resources import DEVICE_CLASS_PREFIX
from kubestow.cache.objects import ObjectStore

_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


class DeviceClassMap:
    """Finds the class behind a resource name; keeps its table until the store changes."""

    def __init__(self, store: ObjectStore[DeviceClass]) -> None:
        self._store = store
        self._version = -1
        self._by_resource: dict[str, DeviceClass] = {}

    def class_of(self, resource: str) -> DeviceClass | None:
        """The class that serves the resource; None if no class does."""
        if self._version != self._store.version:
            self._by_resource = classes_by_resource(self._store)
            self._version = self._store.version
        found = self._by_resource.get(resource)
        if found is None and resource.startswith(DEVICE_CLASS_PREFIX):
            return self._store.get(resource.removeprefix(DEVICE_CLASS_PREFIX))
        return found


def classes_by_resource(classes: Iterable[DeviceClass]) -> dict[str, DeviceClass]:
    """Extended resource name → class. Of two that claim one, the later made wins, then the smaller
    name."""
    # Later entries replace earlier ones: the winner has to come last.
    by_name = sorted(classes, key=lambda each: each.metadata.name, reverse=True)
    return {
        each.spec.extended_resource_name: each
        for each in sorted(by_name, key=_created)
        if each.spec.extended_resource_name
    }


def _created(device_class: DeviceClass) -> datetime:
    return device_class.metadata.creation_timestamp or _BEGINNING
