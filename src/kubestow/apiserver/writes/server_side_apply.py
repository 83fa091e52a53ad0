"""Server-side apply: each manager applies its fields, and the server records their owners.

Applied fields are merged into the object. Fields that a manager applied before and now leaves out
are removed, unless another manager owns them. A different value of a field that another manager
owns is a conflict, unless the request is forced; then the other manager loses the field. A manager
that changes a field without applying takes it over.

Managers that write without applying are recorded only on objects with an applied field. So a first
apply over an object made by `kubectl create` causes no conflict here, where a real server might
report one.

Pure: documents in, documents out.
"""

from typing import Final, NamedTuple

from kubestow.api.meta import JsonObject
from kubestow.apiserver.schema.types import Schema
from kubestow.apiserver.writes.field_sets import (
    SELF,
    FieldSet,
    difference,
    fields_of,
    intersection,
    leaves,
    merged,
    path_text,
    union,
    value_of,
    without,
)
from kubestow.cluster.documents import as_object, objects_in, replaced_at, value_at
from kubestow.errors import ConflictError

CONTENT_TYPES: Final = ("application/apply-patch+yaml", "application/apply-patch+cbor")
_FIELDS: Final = ("metadata", "managedFields")
# The identity of an object is owned by no manager.
_IDENTITY: Final = (
    "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "generateName", "selfLink",
)  # fmt: skip


class Writer(NamedTuple):
    """The manager that writes, when, and through which subresource."""

    manager: str
    time: str
    subresource: str = ""


class ApplyConflictError(ConflictError):
    """Other managers own different values; `conflicts` lists managers and fields."""

    def __init__(self, conflicts: list[tuple[str, str]]) -> None:
        self.conflicts: Final = conflicts
        super().__init__(_conflict_text(conflicts))


def applied(
    live: JsonObject | None,
    wanted: JsonObject,
    writer: Writer,
    schema: Schema,
    *,
    is_forced: bool,
) -> JsonObject:
    """The object after a manager applied its fields; raises ApplyConflictError."""
    wanted_fields = _owned_fields(wanted, schema)
    base = live or {}
    entries = objects_in(value_at(base, *_FIELDS))
    own = next((entry for entry in entries if _is_own(entry, writer)), None)
    others = [entry for entry in entries if entry is not own]
    document = merged(base, _without_identity(wanted, is_new=live is None), schema)
    # Only what the merge changes: an applied `{}` requires an object and removes nothing.
    changed = _differing(base, document, wanted_fields)
    contested = _contested(changed, others)
    if contested and not is_forced:
        raise ApplyConflictError(contested)
    if own is not None:
        dropped = difference(as_object(own.get("fieldsV1")), wanted_fields)
        for entry in others:
            dropped = difference(dropped, as_object(entry.get("fieldsV1")))
        document = without(document, dropped)
    if contested:
        others = [_without_fields(entry, changed) for entry in others]
    entry = _entry(writer, "Apply", wanted.get("apiVersion", ""), wanted_fields)
    kept = [other for other in others if other.get("fieldsV1")]
    return replaced_at(document, _FIELDS, [*kept, entry])


def taken_over(old: JsonObject, new: JsonObject, writer: Writer, schema: Schema) -> JsonObject:
    """A document written without applying: the writer now owns the fields it changes.

    Objects without applied fields are not changed.
    """
    entries = objects_in(value_at(old, *_FIELDS))
    if not any(entry.get("operation") == "Apply" for entry in entries):
        return new
    if "managedFields" not in as_object(new.get("metadata")):
        # Most clients do not send the field back; that must not remove it.
        new = replaced_at(new, _FIELDS, entries)
    elif not value_at(new, *_FIELDS) or value_at(new, *_FIELDS) == [{}]:
        return replaced_at(new, _FIELDS, None)
    before, after = _owned_fields(old, schema), _owned_fields(new, schema)
    changed = _differing(old, new, after)
    gone = difference(before, after)
    if not changed and not gone:
        return new
    lost = union(changed, gone)
    own = next((entry for entry in entries if _is_own(entry, writer, "Update")), None)
    kept = [_without_fields(entry, lost) for entry in entries if entry is not own]
    owned = as_object(own.get("fieldsV1")) if own is not None else {}
    fields = union(difference(owned, gone), changed)
    result = [entry for entry in kept if entry.get("fieldsV1")]
    if fields:
        result.append(_entry(writer, "Update", new.get("apiVersion", ""), fields))
    return replaced_at(new, _FIELDS, result)


def _owned_fields(document: JsonObject, schema: Schema) -> FieldSet:
    """The fields of a document that a manager can own."""
    metadata = {
        key: value
        for key, value in as_object(document.get("metadata")).items()
        if key not in _IDENTITY
    }
    content = {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}
    content["metadata"] = metadata
    fields = fields_of(content, schema)
    if not metadata:
        del fields["f:metadata"]
    return fields


def _without_identity(wanted: JsonObject, *, is_new: bool) -> JsonObject:
    if is_new:
        return wanted
    metadata = as_object(wanted.get("metadata"))
    # A version and a UID in a request are conditions on it; the store checks them.
    kept = {
        key: value
        for key, value in metadata.items()
        if key not in _IDENTITY or key in ("uid", "resourceVersion")
    }
    return {**wanted, "metadata": kept}


def _differing(old: JsonObject, new: JsonObject, fields: FieldSet) -> FieldSet:
    """Which of the fields differ between the two documents."""
    differing: FieldSet = {}
    for path in leaves(fields):
        before, after = value_of(old, path), value_of(new, path)
        # Owning an element requires only that it exists; its fields are owned one by one.
        is_same = (before is None) == (after is None) if path[-1] == SELF else before == after
        if not is_same:
            differing = union(differing, _set_of(path))
    return differing


def _set_of(path: tuple[str, ...]) -> FieldSet:
    fields: FieldSet = {}
    for step in reversed(path):
        fields = {step: fields}
    return fields


def _contested(changed: FieldSet, others: list[JsonObject]) -> list[tuple[str, str]]:
    """Manager and path of each changed field that another manager owns."""
    found: list[tuple[str, str]] = []
    for entry in others:
        contested = intersection(changed, as_object(entry.get("fieldsV1")))
        who = f'"{entry.get("manager", "")}" using {entry.get("apiVersion", "")}'
        found += [(who, path_text(path)) for path in leaves(contested)]
    return found


def _without_fields(entry: JsonObject, lost: FieldSet) -> JsonObject:
    return {**entry, "fieldsV1": difference(as_object(entry.get("fieldsV1")), lost)}


def _is_own(entry: JsonObject, writer: Writer, operation: str = "Apply") -> bool:
    return (
        entry.get("manager") == writer.manager
        and entry.get("operation") == operation
        and entry.get("subresource", "") == writer.subresource
    )


def _entry(writer: Writer, operation: str, api_version: str, fields: FieldSet) -> JsonObject:
    entry: JsonObject = {
        "manager": writer.manager,
        "operation": operation,
        "apiVersion": api_version,
        "time": writer.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return entry | ({"subresource": writer.subresource} if writer.subresource else {})


def _conflict_text(conflicts: list[tuple[str, str]]) -> str:
    if len(conflicts) == 1:
        ((who, where),) = conflicts
        return f"Apply failed with 1 conflict: conflict with {who}: {where}"
    lines = [f"Apply failed with {len(conflicts)} conflicts:"]
    by_manager: dict[str, list[str]] = {}
    for who, where in conflicts:
        by_manager.setdefault(who, []).append(where)
    for who, places in by_manager.items():
        lines.append(f"conflicts with {who}:")
        lines += [f"- {place}" for place in places]
    return "\n".join(lines)
