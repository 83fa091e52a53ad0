"""JSON text and plain documents to API objects and back.

Objects are decoded straight into structs, without dictionaries in between, because a cluster sends
tens of thousands of them. Errors may take longer: their text names the object, the field and the
value.

Kubernetes reads `null` as "not given" (in a map: as the zero value), msgspec does not. So a
document that does not decode is tried again without its nulls before it counts as wrong.

Invariant: `KINDS` is the one register of kinds; a new kind is added to `_KINDS_BY_GROUP`.
Not here: reading files (`files`), values that decode but are not valid (`check`), the defaults that
the API server fills in.
"""

import json
import re
from functools import cache
from typing import Any, Final, TypeGuard, TypeVar

import msgspec

from kubestow.api.config_map import ConfigMap
from kubestow.api.coordination import Binding, Event, Lease
from kubestow.api.deep_json import LEVELS_KEPT, DeepJson, OpaqueJson, read_json
from kubestow.api.device import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from kubestow.api.meta import ApiObject, JsonObject, Object
from kubestow.api.node import Node
from kubestow.api.plain_types import plain
from kubestow.api.pod import Pod
from kubestow.api.pod_group import (
    CompositePodGroup,
    PodGroup,
    PodGroupV1Beta1,
    SchedulerPluginsPodGroup,
    Workload,
)
from kubestow.api.quantity import Quantity, parse_quantity
from kubestow.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubestow.api.workload import (
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from kubestow.errors import DecodeError

T = TypeVar("T", bound=Object)

_KINDS_BY_GROUP: Final[dict[str, tuple[type[ApiObject], ...]]] = {
    "": (
        Binding,
        ConfigMap,
        Namespace,
        Node,
        PersistentVolume,
        PersistentVolumeClaim,
        Pod,
        ReplicationController,
        Service,
    ),
    "apps": (ReplicaSet, StatefulSet),
    "coordination.k8s.io": (Lease,),
    "events.k8s.io": (Event,),
    "policy": (PodDisruptionBudget,),
    "resource.k8s.io": (
        DeviceClass,
        DeviceTaintRule,
        ResourceClaim,
        ResourceClaimTemplate,
        ResourceSlice,
    ),
    "scheduling.k8s.io": (CompositePodGroup, PodGroup, PriorityClass, Workload),
    "storage.k8s.io": (CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment),
}
KINDS: Final[dict[str, type[ApiObject]]] = {
    cls.__name__: cls for classes in _KINDS_BY_GROUP.values() for cls in classes
}

# Kinds whose class is not named after them, because another kind has the name.
_BY_VERSION_AND_KIND: Final[dict[tuple[str, str], type[ApiObject]]] = {
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup"): SchedulerPluginsPodGroup,
    ("scheduling.k8s.io/v1beta1", "PodGroup"): PodGroupV1Beta1,
    ("scheduling.k8s.io/v1alpha3", "PodGroup"): PodGroupV1Beta1,
}

# What msgspec raises for a text that it cannot decode at once: other types, nulls, no JSON, bytes
# that are not UTF-8, and nesting beyond the stack.
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

# A wrong key is searched among this many: each one tried costs a decoding of the object.
_KEYS_TRIED: Final = 1000
VALUE_LENGTH_MAX: Final = 80  # of a value quoted in an error


def decode_json(cls: type[T], raw: bytes) -> T:
    """The object a JSON text holds; raises DecodeError."""
    try:
        return _decoder(cls).decode(raw)
    except UNREADABLE:
        pass  # perhaps only because of nulls
    try:
        document = read_json(raw)
    except UNREADABLE as error:
        raise DecodeError(f"cannot decode {cls.__name__}: not JSON: {error}") from error
    return _convert_slowly(cls, document)


def convert(cls: type[T], document: JsonObject) -> T:
    """The object a plain document (dictionaries, lists, scalars) holds; raises DecodeError."""
    try:
        return msgspec.convert(document, cls, dec_hook=dec_hook)
    except (msgspec.ValidationError, RecursionError):
        return _convert_slowly(cls, document)


def encode_json(obj: Object) -> bytes:
    return _ENCODER.encode(obj)


def to_document(obj: Object) -> JsonObject:
    """The object as a plain document; fields that have their defaults are left out.

    What is nested deeply is a `msgspec.Raw`, so that the document can always be compared and
    encoded.
    """
    # Through JSON text: `msgspec.to_builtins` leaves tuples where a document has lists.
    raw = _ENCODER.encode(obj)
    if raw.count(b"{") + raw.count(b"[") > LEVELS_KEPT:  # else it cannot be nested deeply
        document = DeepJson(raw).document()
        assert is_map(document)
        return document
    return msgspec.json.decode(raw)


def class_of(document: JsonObject) -> type[ApiObject] | None:
    """The class for a document, None for a kind that is not in `KINDS`.

    Kind names repeat across API groups (Knative has a `Service` too), so the group must match where
    an `apiVersion` is given.
    """
    kind, api_version = document.get("kind"), document.get("apiVersion")
    cls = KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None or not isinstance(api_version, str):
        return cls
    renamed = _BY_VERSION_AND_KIND.get((api_version, cls.__name__))
    if renamed is not None:
        return renamed
    group = api_version.rpartition("/")[0]
    return cls if cls in _KINDS_BY_GROUP.get(group, ()) else None


def dec_hook(kind: type, value: object) -> Quantity | OpaqueJson:
    """For msgspec: decodes the types it cannot."""
    if kind is OpaqueJson:
        return OpaqueJson.of(value)
    if kind is not Quantity:
        raise NotImplementedError(f"no rule to decode {kind.__name__}")
    if isinstance(value, str):
        return parse_quantity(value.strip())
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return parse_quantity(value)
    raise ValueError('expected a quantity such as "500m" or "2Gi"')


def enc_hook(value: object) -> str | msgspec.Raw:
    """For msgspec: encodes the types it cannot."""
    if isinstance(value, OpaqueJson):
        return msgspec.Raw(value.text)
    if not isinstance(value, Quantity):
        raise NotImplementedError(f"no rule to encode {type(value).__name__}")
    return str(value)


_ENCODER: Final = msgspec.json.Encoder(enc_hook=enc_hook)


@cache  # one for each class of this package: expensive to build, cheap to use
def _decoder(cls: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(cls, dec_hook=dec_hook)


# --- Nulls ------------------------------------------------------------------------------------


def _convert_slowly(cls: type[T], document: object) -> T:
    try:
        cleaned = _without_nulls(document, _type_info(cls))
        return msgspec.convert(cleaned, cls, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        raise DecodeError(_explain(cls, document, str(error))) from error
    except RecursionError as error:
        subject = f"cannot decode {cls.__name__}{_name_in(document)}"
        raise DecodeError(f"{subject}: it is nested too deeply") from error


@cache
def _type_info(cls: type[Object]) -> msgspec.inspect.Type:
    return msgspec.inspect.type_info(cls)


def _without_nulls(value: object, kind: msgspec.inspect.Type) -> object:
    """A copy of the document in which each null is left out or has become its type's zero value."""
    match kind:
        case msgspec.inspect.UnionType():
            # Only `X | None` occurs.
            chosen = next(t for t in kind.types if not isinstance(t, msgspec.inspect.NoneType))
            return _without_nulls(value, chosen)
        case msgspec.inspect.StructType() if is_map(value):
            kinds = {field.encode_name: field.type for field in kind.fields}
            return {
                key: _without_nulls(entry, kinds[key]) if key in kinds else entry
                for key, entry in value.items()
                if entry is not None
            }
        case msgspec.inspect.DictType() if is_map(value):
            return {
                key: _zero(kind.value_type)
                if entry is None
                else _without_nulls(entry, kind.value_type)
                for key, entry in value.items()
            }
        case msgspec.inspect.VarTupleType() if is_list(value):
            return [
                _zero(kind.item_type) if entry is None else _without_nulls(entry, kind.item_type)
                for entry in value
            ]
        case _:
            return value


def _zero(kind: msgspec.inspect.Type) -> object:
    match kind:
        case msgspec.inspect.StrType():
            return ""
        case msgspec.inspect.StructType():
            return {}
        case _:
            return None  # for a quantity the hook reads it as zero


# --- What went wrong --------------------------------------------------------------------------

_MESSAGE: Final = re.compile(
    r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`(?P<path>\$.*)`)?", re.DOTALL
)
_PATH_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


def _explain(cls: type[Object], document: object, message: str) -> str:
    """Turn msgspec's message about a document into one that names object, field and value."""
    parts = _MESSAGE.fullmatch(message)
    assert parts is not None, message
    subject = f"cannot decode {entry_of(document, 'kind') or cls.__name__}{_name_in(document)}"
    if parts["path"] is None:
        return f"{subject} from {quoted(document)}: {plain(parts['what'])}"
    path, value = _locate(cls, document, message, parts["path"])
    if parts["key"]:
        return f"{subject}: keys of {path}: {plain(parts['what'])}"
    return f"{subject}: {path} is {quoted(value)}: {plain(parts['what'])}"


def _locate(cls: type[Object], document: object, message: str, path: str) -> tuple[str, object]:
    """The path as a user writes it, and the value found there.

    msgspec prints `[...]` for a key of a map; which one it was is found by decoding each alone.
    """
    steps: list[str | int] = []
    value = document
    for field, index in _PATH_STEP.findall(path):
        step: str | int = field
        if index == "...":
            step = _wrong_key(cls, document, message, steps)
        elif index:
            step = int(index)
        steps.append(step)
        value = entry_of(value, step)
    return _shown(steps), value


def _wrong_key(cls: type[Object], document: object, message: str, steps: list[str | int]) -> str:
    keys: list[str] = []
    value = document
    for step in steps:
        value = entry_of(value, step)
    if is_map(value):
        keys = list(value)[:_KEYS_TRIED]
    for key in keys:
        try:
            trial = _with_only(document, steps, key)
            msgspec.convert(_without_nulls(trial, _type_info(cls)), cls, dec_hook=dec_hook)
        except msgspec.ValidationError as error:
            if str(error) == message:
                return key
    return "..."


def _with_only(value: Any, steps: list[str | int], key: str) -> Any:
    """A copy of the document whose map at `steps` has only that key."""
    if not steps:
        return {key: value[key]}
    copy = value.copy()
    copy[steps[0]] = _with_only(value[steps[0]], steps[1:], key)
    return copy


def entry_of(value: object, step: str | int) -> object:
    if isinstance(step, int):
        return value[step] if is_list(value) and step < len(value) else None
    return value.get(step) if is_map(value) else None


def _shown(steps: list[str | int]) -> str:
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.isalnum() and not step[0].isdigit():
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]'
    return text


def _name_in(document: object) -> str:
    """The name of the object, as far as the document has one."""
    meta = entry_of(document, "metadata")
    name = entry_of(meta, "name") or entry_of(meta, "generateName")
    namespace = entry_of(meta, "namespace")
    if not name:
        return ""
    return f' "{namespace}/{name}"' if namespace else f' "{name}"'


def quoted(value: object) -> str:
    """A value as errors show it: as JSON, cut where it gets long."""
    text = ""
    for part in _SHORT_ENCODER.iterencode(value):  # made piece by piece: the rest is never built
        text += part
        if len(text) > VALUE_LENGTH_MAX:
            return f"{text[:VALUE_LENGTH_MAX]}…"
    return text


_SHORT_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False, default=str)


def is_map(value: object) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)
