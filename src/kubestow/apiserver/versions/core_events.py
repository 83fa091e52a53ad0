"""Events under their older name: `v1` and `events.k8s.io/v1` are two views of one object.

kubectl reads and writes the older one; the store keeps the newer one, which the scheduler writes.
Translation loses nothing: every field has its counterpart.
"""

from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.cluster.resources import EVENTS

# Name in v1 → name in events.k8s.io/v1.
_FIELDS: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_FIELDS_BACK: Final = {new: old for old, new in _FIELDS.items()}


def to_core(document: JsonObject) -> JsonObject:
    """The event as `v1` shows it."""
    core = {_FIELDS_BACK.get(key, key): value for key, value in document.items()}
    core["apiVersion"] = "v1"
    return core


def from_core(document: JsonObject) -> JsonObject:
    """The event as it is stored."""
    stored = {_FIELDS.get(key, key): value for key, value in document.items()}
    stored["apiVersion"] = EVENTS.api_version
    return stored


def stored_fields(field_selector: str) -> str:
    """A field selector on the `v1` view, in the names of the stored one."""
    return ",".join(_stored_field(part) for part in field_selector.split(","))


def _stored_field(part: str) -> str:
    for old, new in _FIELDS.items():
        if part.startswith((f"{old}.", f"{old}=", f"{old}!")):
            return new + part.removeprefix(old)
    return part
