"""Which objects of a cluster were made from the templates of others.

A change of such an object cannot be made in a manifest of its own: it is a change of the template.
A volume that a provisioner made, or a claim for an ephemeral volume, has no manifest at all.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kubestow.api.device import ResourceClaim
from kubestow.api.files import Document
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.api.pod import Pod
from kubestow.cluster.documents import value_at
from kubestow.cluster.resources import default_resources
from kubestow.explain.cluster import ObjectKey, Origin, claim_template, key_of
from kubestow.explain.suggestions.owners import TEMPLATES

_NAMESPACED: Final = frozenset(each.kind for each in default_resources() if each.namespaced)

# Kind, namespace, name.
_Name = tuple[str, str, str]


def origins_of(
    objects: Iterable[ApiObject], given: Sequence[Document], made: Sequence[Document]
) -> dict[ObjectKey, Origin | None]:
    """Where objects come from that were not given.

    `made` are the pods of workloads; they have the source of their workload. A pod comes before the
    claims that are made for it.
    """
    names = {_name_in(document.raw) for document in given}
    workloads = {document.source: document.raw for document in given}
    templates = {_name_in(document.raw): workloads[document.source] for document in made}
    claims: dict[tuple[str, str], Origin] = {}
    origins: dict[ObjectKey, Origin | None] = {}
    for each in objects:
        namespace, name = each.metadata.namespace, each.metadata.name
        full_name = (type(each).__name__, namespace, name)
        if isinstance(each, Pod):
            claims |= _made_claims(each)
        if full_name in names:
            continue
        if isinstance(each, ResourceClaim):
            origins[key_of(each)] = claims.get((namespace, name))
        else:
            origins[key_of(each)] = _of_workload(templates.get(full_name))
    return origins


def _name_in(raw: JsonObject) -> _Name:
    kind: str = raw.get("kind", "")
    default = "default" if kind in _NAMESPACED else ""
    namespace: str = value_at(raw, "metadata", "namespace") or default
    return kind, namespace, value_at(raw, "metadata", "name") or ""


def _of_workload(raw: JsonObject | None) -> Origin | None:
    if raw is None:
        return None
    kind, namespace, name = _name_in(raw)
    path = TEMPLATES.get(kind, TEMPLATES["Deployment"])
    return Origin(raw.get("apiVersion", ""), kind, namespace, name, path)


def _made_claims(pod: Pod) -> dict[tuple[str, str], Origin]:
    """The claims made for a pod, by namespace and name."""
    namespace = pod.metadata.namespace
    names = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    return {
        (namespace, name): claim_template(namespace, entry.resource_claim_template_name)
        for entry in pod.spec.resource_claims
        if entry.resource_claim_template_name and (name := names.get(entry.name))
    }
