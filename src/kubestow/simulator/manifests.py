"""What a simulation takes from the manifests of a user.

A directory of manifests, the output of Helm or of `kubectl get` has many kinds that no scheduler
reads: these are left out and counted. Fields that Kubernetes does not have are found, because a
misspelt `nodeSelector` places pods anywhere without an error.

Not here: reading files (`api.files`), pods of workloads (`workloads`), changes (`input`).
"""

import re
import shlex
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import Final, NamedTuple

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.apiserver.schema.known_fields import unknown_fields
from kubestow.cache.objects import ClusterObjects
from kubestow.close_names import close_names
from kubestow.cluster.documents import as_list, as_object, value_at
from kubestow.cluster.resources import (
    DEVICE_TAINT_RULES,
    OLDER_TAINT_RULE_VERSIONS,
    client_resources,
)
from kubestow.simulator.workloads import WORKLOAD_KINDS

# Read when pods are created: by admission, and by the controller that makes claims of pods.
_READ_AT_CREATION: Final = ("ResourceClaimTemplate", "RuntimeClass", "Workload")
READ_KINDS: Final = frozenset(
    (
        *(client_resources().of_type(cls).kind for cls in ClusterObjects().types()),
        *_READ_AT_CREATION,
        *WORKLOAD_KINDS,
    )
)
# Fields of a kustomization that change no placement.
_PLAIN_KUSTOMIZATION: Final = frozenset(
    (
        "apiVersion", "configMapGenerator", "generatorOptions", "images", "kind", "metadata",
        "resources", "secretGenerator",
    )
)  # fmt: skip
_OLDER_RULES: Final = frozenset(
    f"{DEVICE_TAINT_RULES.group}/{version}" for version in OLDER_TAINT_RULE_VERSIONS
)
_HOOK: Final = "helm.sh/hook"
_HELM_TESTS: Final = frozenset(("test", "test-failure", "test-success"))
_INDEX: Final = re.compile(r'\[(\d+|".*?")\]')


class Manifests(NamedTuple):
    """The documents that decide, and how many of each other kind there were."""

    documents: list[Document]
    ignored: Counter[str]
    # Where they are read: a policy of v1.9 may be in one.
    config_maps: list[Document]
    # Of files that were left out though they change others, a line each.
    notes: list[str]
    # Of kinds that decide nothing, but are asked for.
    set_apart: list[Document]
    # Of objects that a cluster would refuse, a line each; filled in where that is checked.
    refusals: Sequence[str] = ()

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
    also_read: Container[str] = (),
    sets_apart: Container[str] = (),
) -> Manifests:
    """Leave out the kinds that neither a scheduler nor the creation of pods reads.

    `dialects` are further API versions whose pod groups are read, `also_read` further kinds.
    Documents of the kinds `sets_apart` are no part of the cluster, and not left out either.
    """
    kept: list[Document] = []
    ignored: Counter[str] = Counter()
    config_maps: list[Document] = []
    notes: list[str] = []
    set_apart: list[Document] = []
    for document in map(_in_served_version, documents):
        if _is_read(document.raw, dialects) or document.raw["kind"] in also_read:
            kept.append(document)
        elif reads_config_maps and document.raw["kind"] == "ConfigMap":
            config_maps.append(document)
        elif document.raw["kind"] in sets_apart:
            set_apart.append(document)
        else:
            label = _label(document.raw)
            if label not in ignored:
                notes += _misspelt_kind(document)
            ignored[label] += 1
            notes += _kustomization_notes(document)
    return Manifests(kept, ignored, config_maps, notes, set_apart)


def _in_served_version(document: Document) -> Document:
    """The document as it is, but a DeviceTaintRule of an earlier version in the later one.

    The objects of a server of v1.36 are those that act when it is v1.37.
    """
    raw = document.raw
    if raw.get("kind") != DEVICE_TAINT_RULES.kind or raw.get("apiVersion") not in _OLDER_RULES:
        return document
    return Document({**raw, "apiVersion": DEVICE_TAINT_RULES.api_version}, document.source)


def _kustomization_notes(document: Document) -> list[str]:
    """A word about a kustomization that does more than name the files beside it."""
    raw = document.raw
    if raw["kind"] != "Kustomization":
        return []
    is_overlay = any(str(path).startswith(("..", "http")) for path in as_list(raw.get("resources")))
    if not is_overlay and raw.keys() <= _PLAIN_KUSTOMIZATION:
        return []
    file = document.source.partition("#")[0]
    return [
        f"{file} is not applied; to have it applied, give -f the output of: "
        f"kubectl kustomize {shlex.quote(_folder(file))}"
    ]


def _misspelt_kind(document: Document) -> list[str]:
    """A word about a kind that is almost one that is read, and none that Kubernetes has."""
    kind: str = document.raw["kind"]
    if kind in READ_KINDS or not _is_built_in(document.raw):
        return []
    close = close_names(kind, READ_KINDS)[:1]
    return [f'{document.source}: unknown kind "{kind}" (did you mean "{each}"?)' for each in close]


def _folder(file: str) -> str:
    return file.rpartition("/")[0] or "."


def _is_read(raw: JsonObject, dialects: Container[str]) -> bool:
    """Whether the kind is read, also in another version, which loading the cluster then refuses."""
    if _is_built_in(raw):
        return raw["kind"] in READ_KINDS and not _is_helm_test(raw)
    return raw["kind"] == "PodGroup" and raw.get("apiVersion", "") in dialects


def _is_built_in(raw: JsonObject) -> bool:
    # Groups of custom resources have a dot, and only Kubernetes has groups below k8s.io.
    group = _group(raw)
    return "." not in group or group.endswith(".k8s.io")


def _is_helm_test(raw: JsonObject) -> bool:
    """Whether it is created by `helm test` only; one that a cluster has does exist."""
    annotations = as_object(value_at(raw, "metadata", "annotations"))
    hooks = {hook.strip() for hook in str(annotations.get(_HOOK, "")).split(",")}
    return hooks <= _HELM_TESTS and not value_at(raw, "metadata", "uid")


def _label(raw: JsonObject) -> str:
    """The kind; with its group if another kind of that name is read."""
    if _is_helm_test(raw):
        return "Helm test"
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
