"""Definitions themselves: their defaults, their status, and the rules they must follow.

The status is written with the object: what a real server's controllers do within a second after a
definition was created has happened here when the request is answered.
"""

import json
import re
from collections.abc import Iterator
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import (
    as_list,
    as_object,
    filled_at,
    is_object,
    objects_in,
    replaced_at,
    value_at,
)
from kubestow.linear_regex import PatternError, compiled

Errors = Iterator[str]

# Added by a delete request, removed when the objects of the definition are deleted.
CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
ESTABLISHED: Final = "Established"
_ACCEPTED: Final = {
    "NamesAccepted": ("NoConflicts", "no conflicts found"),
    ESTABLISHED: ("InitialNamesAccepted", "the initial names have been accepted"),
}
_APPROVAL: Final = "api-approved.kubernetes.io"
_LABEL: Final = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_PROTECTED: Final = (".k8s.io", ".kubernetes.io")


def default_definition(document: JsonObject) -> JsonObject:
    """The definition with its derived names, and with the status that follows from it."""
    kind = value_at(document, "spec", "names", "kind")
    if not isinstance(kind, str):
        return document
    document = filled_at(document, ("spec", "names", "singular"), kind.lower())
    document = filled_at(document, ("spec", "names", "listKind"), f"{kind}List")
    document = filled_at(document, ("spec", "conversion"), {"strategy": "None"})
    return _with_status(document)


def _with_status(document: JsonObject) -> JsonObject:
    status = as_object(document.get("status"))
    conditions = objects_in(status.get("conditions"))
    known = {condition.get("type") for condition in conditions}
    since = value_at(document, "metadata", "creationTimestamp")
    conditions += [
        {
            "type": type,
            "status": "True",
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        }
        for type, (reason, message) in _ACCEPTED.items()
        if type not in known
    ]
    stored = [str(version) for version in as_list(status.get("storedVersions"))]
    for version in objects_in(value_at(document, "spec", "versions")):
        if version.get("storage") is True and version.get("name") not in stored:
            stored.append(version.get("name", ""))
    wanted = {
        **status,
        "conditions": conditions,
        "acceptedNames": value_at(document, "spec", "names"),
        "storedVersions": stored,
    }
    return document if wanted == status else replaced_at(document, ("status",), wanted)


def definition_errors(document: JsonObject) -> Errors:
    """The errors of a definition."""
    spec = as_object(document.get("spec"))
    names = as_object(spec.get("names"))
    yield from _name_errors(document, spec, names)
    scope = spec.get("scope") or ""
    if not scope:
        yield "spec.scope: Required value"
    elif scope not in ("Cluster", "Namespaced"):
        choices = 'supported values: "Cluster", "Namespaced"'
        yield f"spec.scope: Unsupported value: {json.dumps(scope)}: {choices}"
    versions = objects_in(spec.get("versions"))
    if sum(version.get("storage") is True for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        yield f"spec.versions: Invalid value: {json.dumps(versions)}: {detail}"
    if len({version.get("name") for version in versions}) < len(versions):
        detail = "must contain unique version names"
        yield f"spec.versions: Invalid value: {json.dumps(versions)}: {detail}"
    for index, version in enumerate(versions):
        # The schema of a single version is named as if it were that of all versions.
        where = f"spec.versions[{index}]"
        is_only = len(versions) == 1
        yield from _version_errors(
            where, version, "spec.validation" if is_only else f"{where}.schema"
        )
    strategy = value_at(spec, "conversion", "strategy")
    if strategy not in (None, "None"):
        detail = "an embedded server calls no webhooks; None is supported"
        yield f"spec.conversion.strategy: Invalid value: {json.dumps(strategy)}: {detail}"


def definition_change_errors(old: JsonObject, new: JsonObject) -> Errors:
    """The errors of an update: what objects are stored under does not change."""
    for path in (("group",), ("scope",), ("names", "kind"), ("names", "plural")):
        value = value_at(new, "spec", *path)
        if value != value_at(old, "spec", *path):
            where = ".".join(("spec", *path))
            yield f"{where}: Invalid value: {json.dumps(value)}: field is immutable"


def _name_errors(document: JsonObject, spec: JsonObject, names: JsonObject) -> Errors:
    group, plural = spec.get("group") or "", names.get("plural") or ""
    name = value_at(document, "metadata", "name") or ""
    if name != f"{plural}.{group}":
        detail = 'must be spec.names.plural+"."+spec.group'
        yield f"metadata.name: Invalid value: {json.dumps(name)}: {detail}"
    if not group:
        yield "spec.group: Required value"
    elif "." not in group:
        detail = "should be a domain with at least one dot"
        yield f"spec.group: Invalid value: {json.dumps(group)}: {detail}"
    for field in ("plural", "kind"):
        if not names.get(field):
            yield f"spec.names.{field}: Required value"
    annotations = as_object(value_at(document, "metadata", "annotations"))
    is_protected = f".{group}".endswith(_PROTECTED)
    if is_protected and not annotations.get(_APPROVAL):
        detail = f'protected groups must have approval annotation "{_APPROVAL}"'
        see = "see https://github.com/kubernetes/enhancements/pull/1111"
        yield f"metadata.annotations[{_APPROVAL}]: Required value: {detail}, {see}"


def _version_errors(path: str, version: JsonObject, schema_path: str) -> Errors:
    name = version.get("name") or ""
    if not _LABEL.fullmatch(name):
        detail = "a DNS-1035 label must consist of lower case alphanumeric characters or '-'"
        yield f"{path}.name: Invalid value: {json.dumps(name)}: {detail}"
    schema = value_at(version, "schema", "openAPIV3Schema")
    if not is_object(schema):
        yield f"{path}.schema.openAPIV3Schema: Required value"
        return
    where = f"{schema_path}.openAPIV3Schema"
    if not schema.get("type"):
        yield f"{where}.type: Required value: must not be empty at the root"
    elif schema["type"] != "object":
        value = json.dumps(schema["type"])
        yield f"{where}.type: Invalid value: {value}: must be object at the root"
    yield from _schema_errors(where, schema, is_root=True)


def _schema_errors(path: str, schema: JsonObject, *, is_root: bool = False) -> Errors:
    """The errors of a schema: it must be structural, with patterns that can be used."""
    type = schema.get("type")
    is_free = schema.get("x-kubernetes-preserve-unknown-fields") is True
    is_free |= schema.get("x-kubernetes-int-or-string") is True
    if type and type not in _TYPES:
        choices = ", ".join(f'"{choice}"' for choice in _TYPES)
        yield f"{path}.type: Unsupported value: {json.dumps(type)}: supported values: {choices}"
    elif not type and not is_free and not is_root:
        yield f"{path}.type: Required value: must not be empty for specified object fields"
    if type == "array" and not is_object(schema.get("items")):
        yield f"{path}.items: Required value: must be specified"
    if isinstance(pattern := schema.get("pattern"), str):
        try:
            compiled(pattern)
        except PatternError as error:
            detail = f"must be a valid regular expression, but isn't: error parsing regexp: {error}"
            yield f"{path}.pattern: Invalid value: {json.dumps(pattern)}: {detail}"
    for name, below in as_object(schema.get("properties")).items():
        yield from _schema_errors(f"{path}.properties[{name}]", as_object(below))
    for field in ("items", "additionalProperties"):
        if is_object(below := schema.get(field)):
            yield from _schema_errors(f"{path}.{field}", below)
