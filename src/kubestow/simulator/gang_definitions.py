"""Definitions of custom resources that have groups of pods, for the embedded server.

A real cluster has them from the project they belong to. Simulations and demos get them here as soon
as the configuration of the scheduler names the dialect.
"""

from collections.abc import Iterable
from typing import Final

from kubestow.api.files import Document
from kubestow.api.gang_dialects import SCHEDULER_PLUGINS
from kubestow.api.meta import JsonObject
from kubestow.config.arguments import convert_args
from kubestow.config.plugin_args import GangsArgs
from kubestow.config.profile import enabled_names
from kubestow.config.scheduler import SchedulerConfig

_NAME: Final = "podgroups.scheduling.x-k8s.io"
# Unknown fields stay, so that the scheduler can name them.
_SPEC: Final[JsonObject] = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
    "properties": {
        "minMember": {"type": "integer", "format": "int32", "minimum": 1},
        "scheduleTimeoutSeconds": {"type": "integer", "format": "int32"},
        "minResources": {
            "type": "object",
            "additionalProperties": {"x-kubernetes-int-or-string": True},
        },
    },
}
_STATUS: Final[JsonObject] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
POD_GROUP_DEFINITION: Final[JsonObject] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": _NAME},
    "spec": {
        "group": "scheduling.x-k8s.io",
        "scope": "Namespaced",
        "names": {
            "plural": "podgroups",
            "singular": "podgroup",
            "kind": "PodGroup",
            "listKind": "PodGroupList",
            "shortNames": ["pg", "pgs"],
        },
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": _SPEC, "status": _STATUS},
                    }
                },
                "additionalPrinterColumns": [
                    {"name": "MinMember", "type": "integer", "jsonPath": ".spec.minMember"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
            }
        ],
    },
}


def dialects_of(config: SchedulerConfig) -> frozenset[str]:
    """The dialects that the plugin Gangs reads, as far as a profile enables it."""
    found: set[str] = set()
    for profile in config.profiles:
        if "Gangs" in enabled_names(profile.plugins):
            for entry in profile.plugin_config:
                if entry.name == "Gangs":
                    args = entry.args
                    if not isinstance(args, GangsArgs):
                        args = convert_args(entry.name, args, GangsArgs)
                    assert isinstance(args, GangsArgs)
                    found.update(args.dialects)
    return frozenset(found)


def definitions_for(config: SchedulerConfig, given: Iterable[JsonObject]) -> list[Document]:
    """The definitions that the configuration needs and the given objects do not have."""
    names = {
        one.get("metadata", {}).get("name")
        for one in given
        if one.get("kind") == "CustomResourceDefinition"
    }
    if SCHEDULER_PLUGINS not in dialects_of(config) or _NAME in names:
        return []
    return [Document(POD_GROUP_DEFINITION, "built-in")]
