"""Carries out a suggestion on the cluster of a demo, as the kubectl commands beside it would.

What an API server refuses to change is deleted and made again, as `kubectl replace --force` does.
"""

from typing import Annotated, Final

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.writes.json_patch import json_patch
from kubestow.cluster.documents import is_object, removed_at, value_at
from kubestow.cluster.resources import PODS, ApiResource
from kubestow.errors import ApiError, InvalidError, NotFoundError
from kubestow.plural import counted
from kubestow.simulator.live.forms import FormInput, done, wrong

PATCHES_MAX: Final = 1_000
# Their pods stay as they are when the template changes, until they are deleted.
_REPLACED_BY_HAND: Final = ("ReplicaSet", "ReplicationController", "StatefulSet")
# What a server has set, and would refuse in a new object.
_SERVER_FIELDS: Final = (
    ("metadata", "uid"),
    ("metadata", "resourceVersion"),
    ("metadata", "creationTimestamp"),
    ("metadata", "deletionTimestamp"),
    ("metadata", "generation"),
    ("metadata", "managedFields"),
    ("status",),
)
_JOB_FIELDS: Final = (
    ("spec", "selector"),
    ("spec", "template", "metadata", "labels", "batch.kubernetes.io/controller-uid"),
    ("spec", "template", "metadata", "labels", "controller-uid"),
)


class PatchForm(FormInput, frozen=True, kw_only=True):
    """A patch to apply, with the fields of `ObjectPatch` of an explanation."""

    api_version: str
    kind: str
    name: str
    patch: Annotated[list[JsonObject], msgspec.Meta(min_length=1)]
    namespace: str = ""


class SuggestionForm(FormInput, frozen=True, kw_only=True):
    """The patches of a suggestion, and the pod that it is for."""

    patches: Annotated[list[PatchForm], msgspec.Meta(min_length=1, max_length=PATCHES_MAX)]
    namespace: str = ""
    name: str = ""


def apply_suggestion(store: MemoryCluster, form: SuggestionForm) -> JsonObject:
    """Make the changes in their order; an error says how many were made before it."""
    for index, patch in enumerate(form.patches):
        try:
            _apply(store, patch)
        except ApiError as error:
            before = f"; {counted(index, 'change')} before it made" if index else ""
            refusal = ApiError(f"{error}{before}", code=error.code, reason=error.reason)
            refusal.causes = error.causes
            raise refusal from error
    if any(patch.kind in _REPLACED_BY_HAND for patch in form.patches):
        _delete_if_there(store, form.namespace, form.name)
    return done(f"made {counted(len(form.patches), 'change')}", len(form.patches))


def _apply(store: MemoryCluster, patch: PatchForm) -> None:
    resource = _resource(store, patch)
    namespace = patch.namespace if resource.namespaced else ""
    operation = patch.patch[0]
    if operation.get("path") == "":
        if operation.get("op") == "remove":
            store.delete(resource, namespace, patch.name)
        else:
            store.load([_with_kind(patch, operation.get("value"))])
        return
    old = store.get(resource, namespace, patch.name).document
    new = json_patch(old, patch.patch)
    try:
        _update(store, resource, patch, new)
    except InvalidError:
        _make_again(store, resource, patch, new)


def _update(
    store: MemoryCluster, resource: ApiResource, patch: PatchForm, document: JsonObject
) -> None:
    paths = [str(each.get("path", "")) for each in patch.patch]
    if any(not path.startswith("/status/") for path in paths):
        store.update(resource, document)
    if any(path.startswith("/status/") for path in paths):
        namespace = patch.namespace if resource.namespaced else ""
        store.change(
            resource,
            namespace,
            patch.name,
            lambda current: {**current, "status": document.get("status", {})},
            subresource="status",
        )


def _make_again(
    store: MemoryCluster, resource: ApiResource, patch: PatchForm, document: JsonObject
) -> None:
    fields = _SERVER_FIELDS + (_JOB_FIELDS if patch.kind == "Job" else ())
    for path in fields:
        document = removed_at(document, path)
    namespace = patch.namespace if resource.namespaced else ""
    with store.dry_run():
        # What cannot be made is found before anything is deleted; that the name is taken is known.
        store.create(resource, {**document, "metadata": _unnamed(document)})
    store.delete(resource, namespace, patch.name, grace_period_s=0)
    store.load([_with_kind(patch, document)])


def _unnamed(document: JsonObject) -> JsonObject:
    metadata: JsonObject = dict(value_at(document, "metadata") or {})
    name: str = metadata.pop("name", "")
    return {**metadata, "generateName": f"{name[:40]}-"}


def _with_kind(patch: PatchForm, document: object) -> JsonObject:
    if not is_object(document):
        raise wrong("a new object is given as the value of its patch", "patches")
    return {"apiVersion": patch.api_version, "kind": patch.kind, **document}


def _resource(store: MemoryCluster, patch: PatchForm) -> ApiResource:
    try:
        return store.served.of_kind(patch.api_version, patch.kind).stored
    except NotFoundError as error:
        raise wrong(f'there is no kind "{patch.kind}" of {patch.api_version}', "patches") from error


def _delete_if_there(store: MemoryCluster, namespace: str, name: str) -> None:
    if store.find(PODS, namespace, name) is not None:
        store.delete(PODS, namespace, name, grace_period_s=0)
