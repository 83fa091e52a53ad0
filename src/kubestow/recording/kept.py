"""What of an object is recorded: all that is decoded, without what no rule reads.

What is decoded leaves out environment variables, commands and the templates of pods. A scheduler
also has texts that it only passes on: copies of manifests in annotations, the parameters of devices
and of storage classes, what drivers report. Any of them may be secret.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import msgspec

from kubestow.api.decode import UNREADABLE, encode_json
from kubestow.api.deep_json import OpaqueJson
from kubestow.api.device import (
    AllocatedDeviceStatus,
    DeviceAllocationConfiguration,
    DeviceClaimConfiguration,
    DeviceClass,
    DeviceClassConfiguration,
    ResourceClaim,
)
from kubestow.api.meta import ApiObject
from kubestow.api.object_copies import without_copies
from kubestow.api.storage import StorageClass

_NOTHING: Final = OpaqueJson(b"{}")
_replace = msgspec.structs.replace


def recorded_json(api_object: ApiObject) -> bytes:
    """The JSON text of what is recorded of the object."""
    annotations = api_object.metadata.annotations
    if annotations:
        kept = without_copies(annotations)
        if kept is not annotations:
            metadata = _replace(api_object.metadata, annotations=kept)
            api_object = _replace(api_object, metadata=metadata)
    strip = _STRIPPED.get(type(api_object))
    return encode_json(api_object if strip is None else strip(api_object))


def recorded_answer(body: bytes) -> bytes:
    """What is recorded of the answer of an extender, which may hold nodes."""
    if b"nnotations" not in body:
        return body
    try:
        return msgspec.json.encode(_without_copies(msgspec.json.decode(body)))
    except UNREADABLE:
        return body  # nor can a scheduler read it


def _without_copies(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_copies(entry) for entry in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    fields = cast(dict[str, Any], value)
    return {
        # Go reads names of fields in any case.
        key: without_copies(cast(dict[str, str], entry))
        if key.lower() == "annotations" and isinstance(entry, dict)
        else _without_copies(entry)
        for key, entry in fields.items()
    }


# --- by kind ---


# Of a claim, an allocation or a class: each has a field `opaque`.
_Configuration = TypeVar(
    "_Configuration",
    DeviceClaimConfiguration,
    DeviceAllocationConfiguration,
    DeviceClassConfiguration,
)


def _configurations(found: tuple[_Configuration, ...]) -> tuple[_Configuration, ...]:
    return tuple(
        each
        if each.opaque is None
        else _replace(each, opaque=_replace(each.opaque, parameters=_NOTHING))
        for each in found
    )


def _claim(claim: ResourceClaim) -> ResourceClaim:
    devices, status = claim.spec.devices, claim.status
    if devices.config:
        devices = _replace(devices, config=_configurations(devices.config))
        claim = _replace(claim, spec=_replace(claim.spec, devices=devices))
    if status.allocation is not None and status.allocation.devices.config:
        allocated = status.allocation.devices
        allocated = _replace(allocated, config=_configurations(allocated.config))
        status = _replace(status, allocation=_replace(status.allocation, devices=allocated))
    if status.devices:
        status = _replace(status, devices=tuple(map(_reported, status.devices)))
    return claim if status is claim.status else _replace(claim, status=status)


def _reported(device: AllocatedDeviceStatus) -> AllocatedDeviceStatus:
    return _replace(device, data=None, network_data=None)


def _device_class(device_class: DeviceClass) -> DeviceClass:
    spec = device_class.spec
    if not spec.config:
        return device_class
    return _replace(device_class, spec=_replace(spec, config=_configurations(spec.config)))


def _storage_class(storage_class: StorageClass) -> StorageClass:
    return _replace(storage_class, parameters={})


_STRIPPED: Final[dict[type[ApiObject], Callable[[Any], ApiObject]]] = {
    DeviceClass: _device_class,
    ResourceClaim: _claim,
    StorageClass: _storage_class,
}
