"""Copies of a pod, or of a whole group of pods, as a file describes them.

A copy is everything in the file. Each has pods, groups and claims of its own, under names of its
own; references among them follow. All other objects (classes, templates, services) are there once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import objects_in, removed_at, replaced_at, value_at
from kubestow.errors import InputError
from kubestow.simulator.workloads import expand_workloads

# Created in this order, because a pod needs what it names.
_OWN_KINDS: Final = ("Workload", "PodGroup", "PersistentVolumeClaim", "ResourceClaim", "Pod")
# Fields of a pod's metadata that its copies have, besides a name.
_KEPT: Final = ("annotations", "labels", "namespace", "ownerReferences")

Names = Mapping[tuple[str, str], str]  # by kind and name


class CopyTemplate:
    """What a file describes; `number` counts its copies from 1."""

    def __init__(
        self,
        documents: Sequence[Document],
        *,
        on_pod: Callable[[JsonObject], JsonObject] = lambda pod: pod,
    ) -> None:
        """InputError if there is no pod in it; `on_pod` changes each pod."""
        self._on_pod = on_pod
        for document in documents:
            if document.raw["kind"] in ("DaemonSet", "Node"):
                raise InputError(
                    f"{document.source}: a {document.raw['kind']} has no copies; give a pod, or an "
                    "owner of pods such as a Deployment"
                )
        expanded = expand_workloads(documents)
        self._own = [one for kind in _OWN_KINDS for one in expanded if one.raw["kind"] == kind]
        # Deployments and the like have become pods; ReplicaSets decide how pods are spread.
        self.shared = [one for one in expanded if one.raw["kind"] not in (*_OWN_KINDS, "Job")]
        self.pod_count = sum(one.raw["kind"] == "Pod" for one in self._own)
        if not self.pod_count:
            raise InputError("there is no pod in the file to fit, nor an owner of pods")

    @property
    def only_pod(self) -> str:
        """The name of the pod, if a copy is nothing but one pod; else empty."""
        return _name(self._own[0].raw) if len(self._own) == 1 else ""

    def copy(self, number: int) -> list[Document]:
        """The objects of one copy, in the order in which they are created."""
        names = {
            (one.raw["kind"], name): copy_name(name, number)
            for one in self._own
            if (name := _name(one.raw))
        }
        return [Document(self._renamed(one.raw, names), one.source) for one in self._own]

    def _renamed(self, raw: JsonObject, names: Names) -> JsonObject:
        kind = raw["kind"]
        if kind == "Pod":
            raw = self._on_pod(_with_references(_unplaced(raw), names))
        elif kind == "PodGroup":
            path = ("spec", "podGroupTemplateRef", "workload", "workloadName")
            raw = _replaced(raw, path, "Workload", names)
        return replaced_at(raw, ("metadata", "name"), names[kind, _name(raw)])


def copy_name(name: str, number: int) -> str:
    return f"{name}-copy-{number}"


def _unplaced(pod: JsonObject) -> JsonObject:
    """The pod as if it had just been written: it may be copied from a cluster."""
    pod = removed_at(removed_at(pod, ("spec", "nodeName")), ("status",))
    metadata = {key: pod["metadata"][key] for key in _KEPT if key in pod["metadata"]}
    return {**pod, "metadata": {**metadata, "name": _name(pod)}}


def _with_references(pod: JsonObject, names: Names) -> JsonObject:
    pod = _replaced(pod, ("spec", "schedulingGroup", "podGroupName"), "PodGroup", names)
    pod = _replaced_in(
        pod,
        ("spec", "volumes"),
        lambda volume: _replaced(
            volume, ("persistentVolumeClaim", "claimName"), "PersistentVolumeClaim", names
        ),
    )
    return _replaced_in(
        pod,
        ("spec", "resourceClaims"),
        lambda entry: _replaced(entry, ("resourceClaimName",), "ResourceClaim", names),
    )


def _replaced_in(
    pod: JsonObject, path: tuple[str, ...], change: Callable[[JsonObject], JsonObject]
) -> JsonObject:
    entries = objects_in(value_at(pod, *path))
    return replaced_at(pod, path, [change(entry) for entry in entries]) if entries else pod


def _replaced(raw: JsonObject, path: tuple[str, ...], kind: str, names: Names) -> JsonObject:
    new = names.get((kind, value_at(raw, *path) or ""))
    return raw if new is None else replaced_at(raw, path, new)


def _name(raw: JsonObject) -> str:
    metadata = raw["metadata"]
    return metadata.get("name") or str(metadata.get("generateName", "")).rstrip("-")
