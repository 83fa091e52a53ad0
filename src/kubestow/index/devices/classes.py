"""Which extended resources are served by devices: resource name → device class (spec 05 §8.3)."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from kubestow.api.device import DeviceClass
from kubestow.api.resources import DEVICE_CLASS_PREFIX
from kubestow.cache.objects import ObjectStore

_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


class DeviceClassMap:
    """Finds the class of a resource name; keeps its table until the store changes."""

    def __init__(self, store: ObjectStore[DeviceClass]) -> None:
        self._store = store
        self._version = -1
        self._by_resource: dict[str, DeviceClass] = {}

    @property
    def is_empty(self) -> bool:
        return len(self._store) == 0

    @property
    def version(self) -> int:
        """Grows with every change of a class."""
        return self._store.version

    def class_of(self, resource: str) -> DeviceClass | None:
        """The class that serves the resource; None if no class does."""
        if self._version != self._store.version:
            self._by_resource = classes_by_resource(self._store)
            self._version = self._store.version
        return self._by_resource.get(resource)


def classes_by_resource(classes: Iterable[DeviceClass]) -> dict[str, DeviceClass]:
    """Resource name → class, for classes in order of arrival.

    Of two classes with one resource name the later created wins, then the one with the smaller
    name. Spec 08 B11: a class that arrives later and loses is not served under its class name
    either; one that arrived before keeps its class name.
    """
    found: dict[str, DeviceClass] = {}
    for each in classes:
        name = each.spec.extended_resource_name
        if name:
            holder = found.get(name)
            if holder is not None and not _wins(each, holder):
                continue
            found[name] = each
        found[DEVICE_CLASS_PREFIX + each.metadata.name] = each
    return found


def _wins(challenger: DeviceClass, holder: DeviceClass) -> bool:
    made, held = _created(challenger), _created(holder)
    if made != held:
        return made > held
    return challenger.metadata.name < holder.metadata.name


def _created(device_class: DeviceClass) -> datetime:
    return device_class.metadata.creation_timestamp or _BEGINNING
