"""Subresources that write a part of an object which other requests do not write.

pods/ephemeralcontainers    containers for `kubectl debug`: added, never removed
pods/resize                 the resources of containers
…/approval                  the conditions of a certificate request
"""

from collections.abc import Callable
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.refusals import invalid
from kubestow.cluster.documents import as_list, as_object, objects_in, replaced_at, value_at

# From the stored and the wanted object to the one that is written.
Part = Callable[[JsonObject, JsonObject], JsonObject]
_EPHEMERAL: Final = ("spec", "ephemeralContainers")


def _with_ephemeral_containers(old: JsonObject, wanted: JsonObject) -> JsonObject:
    containers = objects_in(value_at(wanted, *_EPHEMERAL))
    if errors := _ephemeral_errors(objects_in(value_at(old, *_EPHEMERAL)), containers):
        raise invalid("Pod", value_at(old, "metadata", "name") or "", errors)
    return replaced_at(old, _EPHEMERAL, containers)


def _ephemeral_errors(old: list[JsonObject], new: list[JsonObject]) -> list[str]:
    errors: list[str] = []
    by_name = {container.get("name"): container for container in new}
    for container in old:
        name = container.get("name")
        if name not in by_name:
            rule = f'existing ephemeral containers "{name}" may not be removed'
            errors.append(f"spec.ephemeralContainers: Forbidden: {rule}\n")
        elif by_name[name] != container:
            rule = f'existing ephemeral containers "{name}" may not be changed'
            errors.append(f"spec.ephemeralContainers: Forbidden: {rule}\n")
    for index, container in enumerate(new):
        errors += [
            f"spec.ephemeralContainers[{index}].{field}: Required value"
            for field in ("name", "image")
            if not container.get(field)
        ]
    return errors


def _with_resources(old: JsonObject, wanted: JsonObject) -> JsonObject:
    for field in ("containers", "initContainers"):
        sizes = {
            container.get("name"): as_object(container.get("resources"))
            for container in objects_in(value_at(wanted, "spec", field))
        }
        resized = [
            {**container, "resources": sizes[container.get("name")]}
            if container.get("name") in sizes
            else container
            for container in objects_in(value_at(old, "spec", field))
        ]
        if resized:
            old = replaced_at(old, ("spec", field), resized)
    return old


def _with_conditions(old: JsonObject, wanted: JsonObject) -> JsonObject:
    conditions = as_list(value_at(wanted, "status", "conditions"))
    return replaced_at(old, ("status", "conditions"), conditions)


PARTS: Final[dict[str, Part]] = {
    "ephemeralcontainers": _with_ephemeral_containers,
    "resize": _with_resources,
    "approval": _with_conditions,
}
