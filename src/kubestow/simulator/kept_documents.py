"""What of a document is read from a cluster and written to files: all that some rule reads.

Left out is what may be secret and changes no placement:

    copies of manifests in annotations, the history of fields
    of containers        environment variables, hooks and probes; of commands all but how long a
                         simulated process takes and how it ends
    of volumes           options for drivers; of classes of storage, parameters
    of devices           parameters for drivers, and what drivers report
"""

from collections.abc import Callable
from typing import Any, Final

from kubestow.api.meta import JsonObject
from kubestow.api.object_copies import without_copies
from kubestow.cluster.documents import is_list, is_object, removed_at
from kubestow.simulator.pretended_process import shortest_command

_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_OF_CONTAINERS: Final = frozenset(
    (
        "args", "command", "env", "envFrom", "lifecycle", "livenessProbe", "readinessProbe",
        "startupProbe",
    )
)  # fmt: skip


def without_copied_parts(document: JsonObject) -> JsonObject:
    """The document without copies of manifests and parameters for drivers of devices, for a file
    that has a cluster as it is. The same object if nothing is left out."""
    return _changed_fields(document, _COPIED)


def without_unread_parts(document: JsonObject) -> JsonObject:
    """The document without all that no rule reads and that may be secret."""
    document = _changed_fields(document, _UNREAD)
    if document.get("kind") == "StorageClass":
        return removed_at(document, ("parameters",))
    return document


# What becomes of the value of a field.
_Rule = Callable[[Any], Any]


def _changed(value: Any, rules: dict[str, _Rule]) -> Any:
    if is_object(value):
        return _changed_fields(value, rules)
    if is_list(value):
        entries = [_changed(entry, rules) for entry in value]
        return entries if any(map(_is_other, entries, value)) else value
    return value


def _changed_fields(document: JsonObject, rules: dict[str, _Rule]) -> JsonObject:
    changed: JsonObject = {}
    for key, value in document.items():
        rule = rules.get(key)
        below = _changed(value, rules)
        changed[key] = below if rule is None else rule(below)
    removed = [key for key, value in changed.items() if value is _REMOVED]
    for key in removed:
        del changed[key]
    if not removed and not any(map(_is_other, changed.values(), document.values())):
        return document
    return changed


def _is_other(one: object, other: object) -> bool:
    return one is not other


# --- rules ---

_REMOVED: Final = object()


def _remove(value: Any) -> Any:
    return value if isinstance(value, str) else _REMOVED  # a label may have any name


def _annotations(value: Any) -> Any:
    return without_copies(value) if is_object(value) else value


def _opaque(value: Any) -> Any:
    # The API server demands parameters.
    return {**value, "parameters": {}} if is_object(value) and value.get("parameters") else value


def _containers(value: Any) -> Any:
    if not is_list(value):
        return value
    return [_bare(entry) if is_object(entry) else entry for entry in value]


def _bare(container: JsonObject) -> JsonObject:
    bare = {key: value for key, value in container.items() if key not in _OF_CONTAINERS}
    command = shortest_command(container)
    return {**bare, "command": command} if command else bare


def _device_reports(value: Any) -> Any:
    """What is kept of `status.devices` of a claim; `spec.devices` is a map."""
    if not is_list(value):
        return value
    return [
        {key: part for key, part in entry.items() if key not in ("data", "networkData")}
        if is_object(entry)
        else entry
        for entry in value
    ]


def _options(value: Any) -> Any:
    return _REMOVED if is_object(value) else value  # those of DNS are a list


_COPIED: Final[dict[str, _Rule]] = {
    "annotations": _annotations,
    "managedFields": _remove,
    "opaque": _opaque,
}
_UNREAD: Final[dict[str, _Rule]] = {
    **_COPIED,
    **dict.fromkeys(_CONTAINERS, _containers),
    "devices": _device_reports,
    "options": _options,
    "volumeAttributes": _remove,
}
