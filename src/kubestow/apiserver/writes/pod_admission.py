"""Admission of pods: those with equal specs and labels are admitted once.

Most pods come from a template. What admission makes of one depends on its spec, its labels, the
keys of its annotations and the classes it names; the rest of its metadata is only decoded, and its
name checked. A pod for which that finds a fault takes the long way, which words the fault. Pods of
one template in this process share the dict of the spec, which then need not be compared.

Invariant: what is returned is what `admit_new` returns.
"""

from collections import OrderedDict
from typing import Final, NamedTuple, Protocol

import msgspec

from kubestow.api.decode import convert
from kubestow.api.meta import JsonObject, ObjectMeta
from kubestow.api.pod import Pod
from kubestow.apiserver.writes.admission import Admitted, Lookup, admit_new
from kubestow.apiserver.writes.names import subdomain_problem
from kubestow.cluster.documents import as_object
from kubestow.cluster.resources import PODS, PRIORITY_CLASSES, RUNTIME_CLASSES, ApiResource
from kubestow.errors import DecodeError

ADMITTED_MAX: Final = 1_024
_FIELDS: Final = frozenset(("apiVersion", "kind", "metadata", "spec"))


class VersionedLookup(Lookup, Protocol):
    """What admission reads from the cluster, and when that has changed."""

    def version_of(self, resource: ApiResource) -> int: ...


class _Known(NamedTuple):
    """What all pods with one key have."""

    spec: JsonObject
    status: JsonObject
    typed: Pod


class _Given(NamedTuple):
    """The parts of a document that one key was made of."""

    spec: object
    labels: object
    annotation_keys: frozenset[str]
    key: bytes


class PodAdmission:
    def __init__(self) -> None:
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        # The last document with a spec, by the identity of that.
        self._given: dict[int, _Given] = {}
        # The versions of the classes that the pods were admitted with.
        self._versions = (0, 0)

    def admit(self, document: JsonObject, lookup: VersionedLookup) -> Admitted:
        """What is stored for a new pod; InvalidError or Forbidden if it is not accepted."""
        key = self._key_of(document)
        if key is None:
            return admit_new(PODS, document, lookup)
        versions = lookup.version_of(PRIORITY_CLASSES), lookup.version_of(RUNTIME_CLASSES)
        if versions != self._versions:
            self._known.clear()
            self._versions = versions
        known = self._known.get(key)
        if known is not None and (admitted := _admitted_alike(known, document)) is not None:
            self._known.move_to_end(key)
            return admitted
        return self._admit_first(key, document, lookup)

    def _admit_first(self, key: bytes, document: JsonObject, lookup: Lookup) -> Admitted:
        admitted = admit_new(PODS, document, lookup)
        made, typed = admitted
        if isinstance(typed, Pod) and made["metadata"] == document["metadata"]:
            self._known[key] = _Known(made["spec"], made["status"], typed)
            if len(self._known) > ADMITTED_MAX:
                self._known.popitem(last=False)
        return admitted

    def _key_of(self, document: JsonObject) -> bytes | None:
        """What decides about the pod but for its classes; None if it has more than a new pod."""
        if not document.keys() <= _FIELDS:
            return None
        metadata = as_object(document.get("metadata"))
        spec, labels = document.get("spec"), metadata.get("labels")
        annotations: JsonObject = metadata.get("annotations") or {}
        try:
            given = self._given.get(id(spec))
            # Documents are never modified: what is the same is equal.
            if (
                given is not None
                and given.spec is spec
                and given.labels is labels
                and given.annotation_keys == annotations.keys()
            ):
                return given.key
            key = msgspec.json.encode((spec, labels, sorted(annotations)))
        except (AttributeError, TypeError, ValueError):
            return None  # no JSON: the long way words it
        if len(self._given) >= ADMITTED_MAX:
            self._given.clear()
        self._given[id(spec)] = _Given(spec, labels, frozenset(annotations), key)
        return key


def _admitted_alike(known: _Known, document: JsonObject) -> Admitted | None:
    """What `admit_new` makes of a pod with the same key; None if its metadata has a fault."""
    try:
        metadata = convert(ObjectMeta, document["metadata"])
    except DecodeError:
        return None
    if subdomain_problem(metadata.name) is not None:
        return None
    # One dict for all pods of the template, and for document and struct: each is kept as long as
    # the pod, and as large as the rest of its metadata.
    labels, annotations = known.typed.metadata.labels, metadata.annotations
    if (given := document["metadata"].get("annotations")) == annotations:
        annotations = given
    metadata = msgspec.structs.replace(metadata, labels=labels, annotations=annotations)
    made = {**document, "spec": known.spec, "status": known.status}
    return Admitted(made, msgspec.structs.replace(known.typed, metadata=metadata))
