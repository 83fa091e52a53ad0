"""Marks the pods of a loaded cluster that have the current template of their owner.

DaemonSets and StatefulSets find outdated pods by a label with the hash of the template. Every
implementation has its own hash: without this, all daemons of a real cluster would be replaced as
soon as it is loaded. Which pods were current there is read from what its controllers wrote.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import as_object, replaced_at, value_at
from kubestow.simulator.controllers.daemon_set import REVISION
from kubestow.simulator.controllers.owner_controller import controller_reference
from kubestow.simulator.controllers.templates import template_hash

_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
_POD_GENERATION: Final = "pod-template-generation"


class _Current(NamedTuple):
    """The label that a current pod has, and the hash it gets here."""

    label: str
    value: str
    revision: str


def with_own_revisions(documents: Sequence[Document]) -> list[Document]:
    """The documents, in which current pods have the hash that the controllers here compute."""
    current = {uid: one for uid, one in _current_of_all(documents) if one.value}
    return [_relabelled(document, current) for document in documents]


def _current_of_all(documents: Iterable[Document]) -> Iterable[tuple[str, _Current]]:
    for document in documents:
        raw = document.raw
        if raw.get("kind") not in ("DaemonSet", "StatefulSet"):
            continue
        uid: str = value_at(raw, "metadata", "uid") or ""
        revision = template_hash(as_object(value_at(raw, "spec", "template")))
        if raw.get("kind") == "DaemonSet":
            annotations = as_object(value_at(raw, "metadata", "annotations"))
            value: str = annotations.get(_TEMPLATE_GENERATION) or ""
            yield uid, _Current(_POD_GENERATION, value, revision)
        else:
            value = value_at(raw, "status", "updateRevision") or ""
            name: str = value_at(raw, "metadata", "name") or ""
            yield uid, _Current(REVISION, value, f"{name}-{revision}")


def _relabelled(document: Document, current: dict[str, _Current]) -> Document:
    raw = document.raw
    if raw.get("kind") != "Pod":
        return document
    owner: JsonObject = controller_reference(raw) or {}
    known = current.get(owner.get("uid", ""))
    labels = as_object(value_at(raw, "metadata", "labels"))
    if known is None or labels.get(known.label) != known.value:
        return document
    return Document(
        replaced_at(raw, ("metadata", "labels", REVISION), known.revision), document.source
    )
