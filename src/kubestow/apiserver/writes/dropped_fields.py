"""Fields whose feature gate is off are dropped from new objects (spec 11 §2, 12 §12, §20.2).

An update keeps them only if the stored object has them.
"""

from collections.abc import Iterable
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.writes.groups import CLAIMS, GENERIC, POLICIES, PREEMPTION, TOPOLOGY
from kubestow.cluster.documents import as_object, objects_in, replaced_at, value_at
from kubestow.config.feature_gates import FeatureGates

RESIZE_PREEMPTION: Final = "InPlacePodVerticalScalingSchedulerPreemption"
MOUNT_OPTIONS: Final = "VolumeBindMountOptions"
# Field of a group or a template → the gate it needs.
_GATED_FIELDS: Final = {
    "schedulingConstraints": TOPOLOGY,
    "resourceClaims": CLAIMS,
    "disruptionMode": PREEMPTION,
    "priorityClassName": PREEMPTION,
    "priority": PREEMPTION,
}
# Fields as of v1.37, likewise (spec 12 §12).
_LATER_FIELDS: Final = {
    "parentCompositePodGroupName": "CompositePodGroup",
    "preemptionPolicy": POLICIES,
}
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_OPTIONS: Final = "bindMountOptions"


def drop_disabled(document: JsonObject, old: JsonObject | None, gates: FeatureGates) -> JsonObject:
    """The document without fields whose gate is off, unless the stored object has them."""
    match document.get("kind"):
        case "Node" if not gates.has(RESIZE_PREEMPTION):
            return _without(document, ("podPreemptionPolicy",), old)
        case "Pod":
            if not gates.enabled(GENERIC):
                document = _without(document, ("schedulingGroup",), old)
            has_options = gates.has(MOUNT_OPTIONS) or _has_mount_options(old)
            return document if has_options else _without_mount_options(document)
        case "PodGroup" | "CompositePodGroup":
            fields = [field for field, gate in _GATED_FIELDS.items() if not gates.enabled(gate)]
            fields += [field for field, gate in _LATER_FIELDS.items() if not gates.has(gate)]
            return _without(document, fields, old)
        case "Workload":
            return _without_in_templates(document, old, gates)
        case _:
            return document


def _without(document: JsonObject, fields: Iterable[str], old: JsonObject | None) -> JsonObject:
    spec = as_object(document.get("spec"))
    stored = {} if old is None else as_object(old.get("spec"))
    dropped = [field for field in fields if field in spec and field not in stored]
    if not dropped:
        return document
    return {**document, "spec": {key: spec[key] for key in spec if key not in dropped}}


def _has_mount_options(document: JsonObject | None) -> bool:
    return document is not None and any(
        _OPTIONS in mount
        for field in _CONTAINERS
        for container in objects_in(value_at(document, "spec", field))
        for mount in objects_in(container.get("volumeMounts"))
    )


def _without_mount_options(document: JsonObject) -> JsonObject:
    if not _has_mount_options(document):
        return document
    for field in _CONTAINERS:
        containers = objects_in(value_at(document, "spec", field))
        kept = [
            {
                **container,
                "volumeMounts": [
                    {key: mount[key] for key in mount if key != _OPTIONS}
                    for mount in objects_in(container.get("volumeMounts"))
                ],
            }
            if "volumeMounts" in container
            else container
            for container in containers
        ]
        if kept:
            document = replaced_at(document, ("spec", field), kept)
    return document


def _without_in_templates(
    document: JsonObject, old: JsonObject | None, gates: FeatureGates
) -> JsonObject:
    if old is not None:
        return document  # Templates cannot change, so an update has those that are stored.
    off = {field for field, gate in _GATED_FIELDS.items() if not gates.enabled(gate)}
    templates = objects_in(value_at(document, "spec", "podGroupTemplates"))
    if not any(off & template.keys() for template in templates):
        return document
    kept = [{key: template[key] for key in template if key not in off} for template in templates]
    return replaced_at(document, ("spec", "podGroupTemplates"), kept)
