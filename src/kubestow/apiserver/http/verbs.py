"""Requests on objects: get, list, create, update, patch, delete.

Each verb is a plain function from a request to an answer; errors are raised as `ApiError`. The
rules are those of `MemoryCluster`; here is only what the protocol adds: forms of answers, options
in parameters and bodies, dry runs, field managers.

Not here: watches (`streaming`), other subresources than `status` (`subresources`).
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http.bodies import decoded_body, decoded_json, decoded_yaml, for_path
from kubestow.apiserver.http.columns import columns_of
from kubestow.apiserver.http.failures import success_status
from kubestow.apiserver.http.query import Query, finalizer_of
from kubestow.apiserver.http.representation import Form, partial_metadata, partial_metadata_list
from kubestow.apiserver.http.response import ApiResponse, json_response
from kubestow.apiserver.http.routing import ApiPath
from kubestow.apiserver.http.served import ServedResource
from kubestow.apiserver.http.table import table
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.refusals import bad_request, invalid, not_allowed
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.writes import json_patch, server_side_apply
from kubestow.apiserver.writes.patch import apply_patch
from kubestow.apiserver.writes.server_side_apply import Writer, applied, taken_over
from kubestow.clock import Clock
from kubestow.cluster.client import PATCH_TYPES
from kubestow.cluster.documents import as_object, is_object, removed_at, replaced_at, whole_seconds
from kubestow.cluster.resources import NODES, PODS, Subresource
from kubestow.errors import ApiError

Edit = Callable[[JsonObject], JsonObject]

_PATCH_TYPES: Final = (
    *PATCH_TYPES,
    json_patch.CONTENT_TYPE,
    server_side_apply.CONTENT_TYPES[0],
)


class ObjectRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request about the objects of one resource, or a subresource of one of them."""

    path: ApiPath
    served: ServedResource
    query: Query
    form: Form = Form.OBJECT
    body: bytes = b""
    content_type: str = ""
    user_agent: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.path.namespace, self.path.name

    @property
    def subresource(self) -> Subresource:
        """`status` if the object itself is read and written through it."""
        return "status" if self.path.subresource == "status" else ""


class Verbs:
    def __init__(self, cluster: MemoryCluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    # --- Reading ------------------------------------------------------------------------------

    def get(self, request: ObjectRequest) -> ApiResponse:
        return self._answer(request, self._cluster.get(request.served.stored, *request.key))

    def list(self, request: ObjectRequest) -> ApiResponse:
        query = request.query
        requested = query.requested_version()
        page = self._cluster.list(
            request.served.stored,
            query.selection(request.served, request.path.namespace),
            version=requested.version,
            is_exact=requested.is_exact,
            limit=query.number("limit") or 0,
            continue_token=query.text("continue"),
        )
        metadata: JsonObject = {"resourceVersion": str(page.version)}
        if page.continue_token:
            metadata["continue"] = page.continue_token
            if not query.text("fieldSelector") and not query.text("labelSelector"):
                metadata["remainingItemCount"] = page.remaining_count
        return json_response(self._list_document(request, page.items, metadata))

    def _list_document(
        self, request: ObjectRequest, items: Iterable[StoredObject], metadata: JsonObject
    ) -> JsonObject:
        served = request.served
        documents = [stored.document for stored in items]
        if not served.is_as_stored:
            documents = [served.to_client(document) for document in documents]
        match request.form:
            case Form.TABLE:
                return table(
                    columns_of(served.resource),
                    documents,
                    now_ns=self._clock.now_ns(),
                    metadata=metadata,
                    include=request.query.text("includeObject"),
                )
            case Form.METADATA:
                return partial_metadata_list(documents, metadata)
            case Form.OBJECT:
                return {
                    "kind": served.list_kind,
                    "apiVersion": served.resource.api_version,
                    "metadata": metadata,
                    "items": documents,
                }

    # --- Writing ------------------------------------------------------------------------------

    def create(self, request: ObjectRequest) -> ApiResponse:
        served = request.served
        document = for_path(decoded_body(request.body, request.content_type), request.path, served)
        if request.path.namespace == "" and served.resource.namespaced:
            raise bad_request("an empty namespace may not be set during creation")
        return self._answer(request, self._create(request, document), status=201)

    def _create(self, request: ObjectRequest, document: JsonObject) -> StoredObject:
        stored = request.served.stored
        document = request.served.to_store(document)
        # A status in the request is ignored, as by a real server. Nodes register with theirs.
        if stored.has_status and stored is not NODES:
            document = removed_at(document, ("status",))
        with self.maybe_dry_run(request):
            return self._cluster.create(stored, document)

    def update(self, request: ObjectRequest) -> ApiResponse:
        document = for_path(
            decoded_body(request.body, request.content_type), request.path, request.served
        )
        return self._answer(request, self._change(request, lambda _: document))

    def patch(self, request: ObjectRequest) -> ApiResponse:
        media_type = request.content_type.partition(";")[0].strip().lower()
        if media_type == server_side_apply.CONTENT_TYPES[0]:
            return self._apply(request)
        edit = edit_of_patch(request.body, media_type, kind=request.served.resource.kind)
        return self._answer(request, self._change(request, edit))

    def _change(self, request: ObjectRequest, edit: Edit) -> StoredObject:
        """Change an object by an edit of the document as clients see it."""
        served, writer = request.served, self.writer(request)

        def stored_edit(old: JsonObject) -> JsonObject:
            return taken_over(old, served.to_store(edit(served.to_client(old))), writer)

        with self.maybe_dry_run(request):
            return self._cluster.change(
                served.stored, *request.key, stored_edit, subresource=request.subresource
            )

    def _apply(self, request: ObjectRequest) -> ApiResponse:
        query, served = request.query, request.served
        manager = query.text("fieldManager")
        if not manager:
            detail = "fieldManager: Required value: is required for apply patch"
            raise invalid("PatchOptions", "", [detail])
        value = decoded_yaml(request.body)
        if not is_object(value):
            raise bad_request("the body of the request holds no object")
        if not value.get("apiVersion") or not value.get("kind"):
            raise bad_request("an applied object needs apiVersion and kind")
        wanted = served.to_store(for_path(value, request.path, served))
        writer = self.writer(request)
        is_forced = query.flag("force")
        if self._cluster.find(served.stored, *request.key) is None and not request.subresource:
            made = applied(None, wanted, writer, is_forced=is_forced)
            return self._answer(request, self._create(request, made), status=201)
        with self.maybe_dry_run(request):
            changed = self._cluster.change(
                served.stored,
                *request.key,
                lambda old: applied(old, wanted, writer, is_forced=is_forced),
                subresource=request.subresource,
            )
        return self._answer(request, changed)

    def delete(self, request: ObjectRequest) -> ApiResponse:
        stored_resource = request.served.stored
        options = _delete_options(request)
        preconditions = as_object(options.get("preconditions"))
        with self.maybe_dry_run(request, options):
            left = self._cluster.delete(
                stored_resource,
                *request.key,
                uid=preconditions.get("uid") or "",
                resource_version=preconditions.get("resourceVersion") or "",
                grace_period_s=_grace_period_s(request, options),
                finalizer=finalizer_of(options.get("propagationPolicy") or ""),
            )
        if "deletionTimestamp" in left.metadata or stored_resource is PODS:
            return self._answer(request, left)
        resource = request.served.resource
        return json_response(success_status(resource=resource, name=left.name, uid=left.uid))

    def delete_collection(self, request: ObjectRequest) -> ApiResponse:
        served, options = request.served, _delete_options(request)
        selection = request.query.selection(served, request.path.namespace)
        finalizer = finalizer_of(options.get("propagationPolicy") or "")
        with self.maybe_dry_run(request, options):
            gone = [
                self._cluster.delete(
                    served.stored,
                    *stored.key,
                    grace_period_s=_grace_period_s(request, options),
                    finalizer=finalizer,
                )
                for stored in self._cluster.list(served.stored, selection).items
            ]
        metadata: JsonObject = {"resourceVersion": str(self._cluster.version)}
        return json_response(self._list_document(request, gone, metadata))

    # --- Parts --------------------------------------------------------------------------------

    def writer(self, request: ObjectRequest) -> Writer:
        """The sender of a request: the field manager it names, else the program in its header."""
        program = request.user_agent.partition("/")[0] or "unknown"
        return Writer(
            manager=request.query.text("fieldManager") or program,
            time=whole_seconds(self._clock.now_ns()),
            subresource=request.path.subresource,
        )

    def maybe_dry_run(
        self, request: ObjectRequest, options: JsonObject | None = None
    ) -> AbstractContextManager[None]:
        is_dry_run = request.query.is_dry_run or bool(options and options.get("dryRun"))
        return self._cluster.dry_run() if is_dry_run else nullcontext()

    def _answer(
        self, request: ObjectRequest, stored: StoredObject, *, status: int = 200
    ) -> ApiResponse:
        """One object in the form the client requested."""
        document = request.served.to_client(stored.document)
        if request.form is Form.METADATA:
            document = partial_metadata(document)
        elif request.form is Form.TABLE:
            document = table(
                columns_of(request.served.resource),
                [document],
                now_ns=self._clock.now_ns(),
                metadata={"resourceVersion": str(stored.version)},
                include=request.query.text("includeObject"),
            )
        return json_response(document, status=status)


def edit_of_patch(body: bytes, media_type: str, *, kind: str) -> Edit:
    """A patch as a function of the document; 415 for an unknown type of patch."""
    value = decoded_json(body) if media_type in _PATCH_TYPES else None
    if media_type == json_patch.CONTENT_TYPE:
        return lambda document: json_patch.json_patch(document, value)
    patch_type = PATCH_TYPES.get(media_type)
    if patch_type is None:
        raise ApiError(
            "the body of the request was in an unknown format - accepted media types include:"
            f" {', '.join(_PATCH_TYPES)}",
            code=415,
            reason="UnsupportedMediaType",
        )
    if not is_object(value):
        raise bad_request("the patch holds no object")
    patch = value
    return lambda document: apply_patch(document, patch, patch_type, kind=kind)


def _delete_options(request: ObjectRequest) -> JsonObject:
    """Options from the body and from the parameters."""
    options = decoded_body(request.body, request.content_type) if request.body.strip() else {}
    if options and options.get("kind") not in (None, "DeleteOptions"):
        raise bad_request(f'a delete takes DeleteOptions, found kind "{options.get("kind")}"')
    if (policy := request.query.text("propagationPolicy")) and not options.get("propagationPolicy"):
        options = replaced_at(options, ("propagationPolicy",), policy)
    if options.get("orphanDependents"):
        options = replaced_at(options, ("propagationPolicy",), "Orphan")
    return options


def _grace_period_s(request: ObjectRequest, options: JsonObject) -> int | None:
    given = options.get("gracePeriodSeconds")
    return given if isinstance(given, int) else request.query.number("gracePeriodSeconds")


def refuse_verb(method: str) -> ApiError:
    return not_allowed(f"the server does not allow {method} on the requested resource")
