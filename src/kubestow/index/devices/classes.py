"""Which extended resources are served by devices: resource name → device class (spec 05 §8.3)."""

from datetime import UTC, datetime
from typing import Final

from kubestow.api.device import DeviceClass
from kubestow.api.resources import DEVICE_CLASS_PREFIX
from kubestow.cache.objects import ObjectStore

_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


class DeviceClassMap:
    """Finds the class of a resource name.

    Spec 08 B11: the map depends on the order of events, not only on the classes that exist. What a
    class that goes away leaves behind is taken by no other class, until that one is updated.
    """

    def __init__(self, store: ObjectStore[DeviceClass]) -> None:
        self._store = store
        self._by_resource: dict[str, DeviceClass] = {}
        for device_class in store:
            self._changed(None, device_class)
        store.subscribe(self._changed)

    @property
    def is_empty(self) -> bool:
        return len(self._store) == 0

    @property
    def serves_resources(self) -> bool:
        """Whether some resource is served by a class."""
        return bool(self._by_resource)

    def read_version(self) -> int:
        """Grows with every change of a class."""
        return self._store.version

    def class_of(self, resource: str) -> DeviceClass | None:
        """The class that serves the resource; None if no class does."""
        return self._by_resource.get(resource)

    def _changed(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        """The later created of two classes with one name wins, then the one with the smaller name.

        A class that loses is not served under its class name either, unless it was before. So is a
        change of a class that keeps its name: against itself it does not win.
        """
        name = None if new is None else new.spec.extended_resource_name
        holder = None if name is None else self._by_resource.get(name)
        if new is not None and holder is not None and not _wins(new, holder):
            return
        if old is not None:
            # Whichever class has the name.
            self._by_resource.pop(old.spec.extended_resource_name or "", None)
            self._by_resource.pop(DEVICE_CLASS_PREFIX + old.metadata.name, None)
        if new is not None:
            if name:
                self._by_resource[name] = new
            self._by_resource[DEVICE_CLASS_PREFIX + new.metadata.name] = new


def _wins(challenger: DeviceClass, holder: DeviceClass) -> bool:
    made, held = _created(challenger), _created(holder)
    if made != held:
        return made > held
    return challenger.metadata.name < holder.metadata.name


def _created(device_class: DeviceClass) -> datetime:
    return device_class.metadata.creation_timestamp or _BEGINNING
