"""What a simulation takes from the manifests of a user.

A directory of manifests, the output of Helm or of `kubectl get` has many kinds that no scheduler
reads: these are left out and counted. Fields that Kubernetes does not have are found, because a
misspelt `nodeSelector` places pods anywhere without an error.

Not here: reading files (`api.files`), pods of workloads (`workloads`).
"""

import re
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import Final, NamedTuple

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.apiserver.schema.known_fields import unknown_fields
from kubestow.cache.objects import ClusterObjects
from kubestow.cluster.documents import as_list, as_object, objects_in, removed_at, value_at
from kubestow.simulator.workloads import WORKLOAD_KINDS

# Read when pods are created: by admission, and by the controller that makes claims of pods.
_READ_AT_CREATION: Final = ("ResourceClaimTemplate", "RuntimeClass", "Workload")
READ_KINDS: Final = frozenset(
    (
        *(cls.__name__ for cls in ClusterObjects().types()),
        *_READ_AT_CREATION,
        *WORKLOAD_KINDS,
    )
)
# Only on static pods, which a kubelet starts by itself.
_MIRROR: Final = "kubernetes.io/config.mirror"
# The names of the claims that were made for the pod; they exist without a placement.
_CLAIM_NAMES: Final = "resourceClaimStatuses"
_TERMINAL: Final = ("Succeeded", "Failed")
_INDEX: Final = re.compile(r'\[(\d+|".*?")\]')


class Manifests(NamedTuple):
    """The documents that decide, and how many of each other kind there were."""

    documents: list[Document]
    ignored: Counter[str]
    # Where they are read: a policy of v1.9 may be in one.
    config_maps: list[Document]

    def ignored_text(self) -> str:
        """For example "ignored: 3 Ingress, 1 Role"; empty if nothing was ignored."""
        if not self.ignored:
            return ""
        counts = sorted(self.ignored.items(), key=lambda entry: (-entry[1], entry[0]))
        return "ignored: " + ", ".join(f"{count} {kind}" for kind, count in counts)


def select_manifests(
    documents: Iterable[Document],
    *,
    reads_config_maps: bool = False,
    dialects: Container[str] = (),
) -> Manifests:
    """Leave out the kinds that neither a scheduler nor the creation of pods reads.

    `dialects` are further API versions whose pod groups are read.
    """
    kept: list[Document] = []
    ignored: Counter[str] = Counter()
    config_maps: list[Document] = []
    for document in documents:
        if _is_read(document.raw, dialects):
            kept.append(document)
        elif reads_config_maps and document.raw["kind"] == "ConfigMap":
            config_maps.append(document)
        else:
            ignored[_label(document.raw)] += 1
    return Manifests(kept, ignored, config_maps)


def _is_read(raw: JsonObject, dialects: Container[str]) -> bool:
    """Also another version of a kind that is read, which setting up the cluster then refuses."""
    if _is_built_in(raw):
        return raw["kind"] in READ_KINDS
    return raw["kind"] == "PodGroup" and raw.get("apiVersion", "") in dialects


def _is_built_in(raw: JsonObject) -> bool:
    # Groups of custom resources have a dot, and only Kubernetes has groups below k8s.io.
    group = _group(raw)
    return "." not in group or group.endswith(".k8s.io")


def _label(raw: JsonObject) -> str:
    """The kind; with its group if another kind of that name is read."""
    kind: str = raw["kind"]
    return f"{kind}.{_group(raw)}" if kind in READ_KINDS else kind


def _group(raw: JsonObject) -> str:
    api_version = raw.get("apiVersion")
    return api_version.rpartition("/")[0] if isinstance(api_version, str) else ""


def unknown_field_texts(documents: Iterable[Document]) -> list[str]:
    """A line for each field that Kubernetes does not have; with a count where it repeats."""
    first: dict[tuple[str, str], str] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for document in documents:
        if not _is_built_in(document.raw):
            continue  # The scheduler names what it does not read of these.
        for field in unknown_fields(document.raw):
            key = (document.raw["kind"], _INDEX.sub("", field.path))
            counts[key] += 1
            if key not in first:
                hint = f' (did you mean "{field.similar}"?)' if field.similar else ""
                first[key] = f'{document.source}: unknown field "{field.path}"{hint}'
    return [
        text if counts[key] == 1 else f"{text}, and {counts[key] - 1} more like it"
        for key, text in first.items()
    ]


def without_placements(documents: Sequence[Document]) -> list[Document]:
    """The documents as if no pod had been placed.

    Pods that no scheduler places keep their node: static pods, and pods that have ended or are
    being deleted. Devices allocated for the others are free again; volumes stay bound.
    """
    forgotten = {
        (_namespace(document.raw), value_at(document.raw, "metadata", "name"))
        for document in documents
        if _is_placed_by_scheduler(document.raw)
    }
    return [Document(_without_placement(one.raw, forgotten), one.source) for one in documents]


def _is_placed_by_scheduler(raw: JsonObject) -> bool:
    metadata = as_object(raw.get("metadata"))
    return (
        raw.get("kind") == "Pod"
        and bool(value_at(raw, "spec", "nodeName"))
        and value_at(raw, "status", "phase") not in _TERMINAL
        and not metadata.get("deletionTimestamp")
        and _MIRROR not in as_object(metadata.get("annotations"))
    )


def _without_placement(raw: JsonObject, forgotten: set[tuple[str, str]]) -> JsonObject:
    match raw.get("kind"):
        case "Pod" if _is_placed_by_scheduler(raw):
            status = as_object(raw.get("status"))
            kept = {_CLAIM_NAMES: status[_CLAIM_NAMES]} if _CLAIM_NAMES in status else {}
            return removed_at({**raw, "status": kept}, ("spec", "nodeName"))
        case "ResourceClaim" if _is_reserved_for(raw, forgotten):
            return removed_at(raw, ("status",))
        case _:
            return raw


def _is_reserved_for(claim: JsonObject, forgotten: set[tuple[str, str]]) -> bool:
    consumers = objects_in(as_list(value_at(claim, "status", "reservedFor")))
    names = {(_namespace(claim), consumer.get("name")) for consumer in consumers}
    return bool(names) and names <= forgotten


def _namespace(document: JsonObject) -> str:
    return value_at(document, "metadata", "namespace") or "default"
