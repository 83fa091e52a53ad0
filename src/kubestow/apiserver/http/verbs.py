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
from kubestow.apiserver.http.bodies import (
    decoded_body,
    decoded_json,
    decoded_yaml,
    for_path,
    repeated_fields,
    require_kind,
)
from kubestow.apiserver.http.columns import columns_of
from kubestow.apiserver.http.failures import success_status
from kubestow.apiserver.http.field_validation import FieldValidation
from kubestow.apiserver.http.parts import PARTS
from kubestow.apiserver.http.query import Query, finalizer_of
from kubestow.apiserver.http.representation import Form, partial_metadata, partial_metadata_list
from kubestow.apiserver.http.response import ApiResponse, json_response
from kubestow.apiserver.http.routing import ApiPath
from kubestow.apiserver.http.table import table
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.refusals import bad_request, invalid, not_allowed
from kubestow.apiserver.schema.builtin import delete_options
from kubestow.apiserver.schema.reading import TypeMismatchError, read
from kubestow.apiserver.schema.types import Schema
from kubestow.apiserver.served import ServedResource
from kubestow.apiserver.store import StoredObject
from kubestow.apiserver.writes import json_patch, server_side_apply
from kubestow.apiserver.writes.patch import apply_patch
from kubestow.apiserver.writes.server_side_apply import Writer, applied, taken_over
from kubestow.clock import Clock
from kubestow.cluster.client import PATCH_TYPES
from kubestow.cluster.documents import (
    as_object,
    is_object,
    removed_at,
    replaced_at,
    value_at,
    whole_seconds,
)
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
        """`status` if that part of the object itself is read and written."""
        return "status" if self.path.subresource in ("status", "approval") else ""

    @property
    def media_type(self) -> str:
        return self.content_type.partition(";")[0].strip().lower()

    def field_validation(self, options: str) -> FieldValidation:
        return FieldValidation(self.query.text("fieldValidation"), self.served, options)

    def repeated_fields(self, fields: FieldValidation) -> list[str]:
        """What to report about fields that the body has twice."""
        if fields.directive == "Ignore":
            return []
        return repeated_fields(self.body, self.content_type)


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
                    columns_of(served),
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
        if request.path.namespace == "" and request.served.resource.namespaced:
            raise bad_request("an empty namespace may not be set during creation")
        fields = request.field_validation("CreateOptions")
        document = self._read_body(request, fields)
        return self._answer(request, self._create(request, document), fields, status=201)

    def _read_body(self, request: ObjectRequest, fields: FieldValidation) -> JsonObject:
        document = decoded_body(request.body, request.content_type)
        require_kind(document, request.served)
        document = fields.body(document, request.repeated_fields(fields))
        return for_path(document, request.path, request.served)

    def _create(self, request: ObjectRequest, document: JsonObject) -> StoredObject:
        stored = request.served.stored
        # A status in the request is ignored, as by a real server. Nodes register with theirs.
        if stored.has_status and stored is not NODES:
            document = removed_at(document, ("status",))
        document = request.served.to_store(request.served.admit(document))
        with self.maybe_dry_run(request):
            return self._cluster.create(stored, document)

    def update(self, request: ObjectRequest) -> ApiResponse:
        fields = request.field_validation("UpdateOptions")
        document = self._read_body(request, fields)
        return self._answer(request, self._change(request, lambda _: document), fields)

    def patch(self, request: ObjectRequest) -> ApiResponse:
        media_type = request.media_type
        if media_type == server_side_apply.CONTENT_TYPES[0]:
            return self._apply(request)
        edit = edit_of_patch(request.body, media_type, request.served.schema)
        fields = request.field_validation("PatchOptions")
        repeated = request.repeated_fields(fields)

        shown = request.body.decode(errors="replace")

        def patched(old: JsonObject) -> JsonObject:
            return fields.patched(edit(old), repeated, shown)

        return self._answer(request, self._change(request, patched), fields)

    def _change(self, request: ObjectRequest, edit: Edit) -> StoredObject:
        """Change an object by an edit of the document as clients see it."""
        served, writer = request.served, self.writer(request)
        part = PARTS.get(request.path.subresource)

        def stored_edit(old: JsonObject) -> JsonObject:
            wanted = served.to_store(served.admit(edit(served.to_client(old))))
            if part is not None:
                wanted = under_conditions(part(old, wanted), wanted)
            return taken_over(old, wanted, writer, served.stored_schema)

        with self.maybe_dry_run(request):
            return self._cluster.change(
                served.stored,
                *request.key,
                stored_edit,
                subresource=request.subresource,
                is_part=part is not None,
            )

    def _apply(self, request: ObjectRequest) -> ApiResponse:
        query, served = request.query, request.served
        if not query.text("fieldManager"):
            detail = "fieldManager: Required value: is required for apply patch"
            raise invalid("PatchOptions.meta.k8s.io", "", [detail])
        fields = request.field_validation("PatchOptions")
        wanted = self._read_applied(request, fields)
        writer, schema = self.writer(request), served.stored_schema
        is_forced = query.flag("force")
        if self._cluster.find(served.stored, *request.key) is None and not request.subresource:
            made = applied(None, wanted, writer, schema, is_forced=is_forced)
            return self._answer(request, self._create(request, made), fields, status=201)

        def merged(old: JsonObject) -> JsonObject:
            new = applied(old, wanted, writer, schema, is_forced=is_forced)
            return served.to_store(served.admit(served.to_client(new)))

        with self.maybe_dry_run(request):
            changed = self._cluster.change(
                served.stored, *request.key, merged, subresource=request.subresource
            )
        return self._answer(request, changed, fields)

    def _read_applied(self, request: ObjectRequest, fields: FieldValidation) -> JsonObject:
        value = decoded_yaml(request.body)
        if not is_object(value):
            raise bad_request("the body of the request holds no object")
        if not value.get("apiVersion") or not value.get("kind"):
            raise bad_request("an applied object needs apiVersion and kind")
        require_kind(value, request.served)
        value = fields.applied(value, request.repeated_fields(fields))
        return request.served.to_store(for_path(value, request.path, request.served))

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
        self,
        request: ObjectRequest,
        stored: StoredObject,
        fields: FieldValidation | None = None,
        *,
        status: int = 200,
    ) -> ApiResponse:
        """One object in the form the client requested, with the warnings about its fields."""
        document = request.served.to_client(stored.document)
        if request.form is Form.METADATA:
            document = partial_metadata(document)
        elif request.form is Form.TABLE:
            document = table(
                columns_of(request.served),
                [document],
                now_ns=self._clock.now_ns(),
                metadata={"resourceVersion": str(stored.version)},
                include=request.query.text("includeObject"),
            )
        response = json_response(document, status=status)
        return response if fields is None else response._replace(warnings=tuple(fields.warnings))


def edit_of_patch(body: bytes, media_type: str, schema: Schema) -> Edit:
    """A patch as a function of the document; 415 for an unknown type of patch."""
    value = decoded_json(body) if media_type in _PATCH_TYPES else None
    if media_type == json_patch.CONTENT_TYPE:
        return lambda document: json_patch.json_patch(document, value)
    patch_type = PATCH_TYPES.get(media_type)
    # The lists of a custom resource have no keys by which a strategic patch could merge them.
    if patch_type is None or (patch_type == "strategic" and schema.is_custom):
        raise ApiError(
            "the body of the request was in an unknown format - accepted media types include:"
            f" {', '.join(_PATCH_TYPES)}",
            code=415,
            reason="UnsupportedMediaType",
        )
    if not is_object(value):
        raise bad_request("the patch holds no object")
    patch = value
    return lambda document: apply_patch(document, patch, patch_type, schema=schema)


def under_conditions(document: JsonObject, request: JsonObject) -> JsonObject:
    """The document with the version and the UID that the request requires it to have."""
    for field in ("resourceVersion", "uid"):
        if given := value_at(request, "metadata", field):
            document = replaced_at(document, ("metadata", field), given)
    return document


def _delete_options(request: ObjectRequest) -> JsonObject:
    """Options from the body and from the parameters."""
    options = decoded_body(request.body, request.content_type) if request.body.strip() else {}
    if options and options.get("kind") not in (None, "DeleteOptions"):
        raise bad_request(f'a delete takes DeleteOptions, found kind "{options.get("kind")}"')
    try:
        options = read(options, delete_options()).document
    except TypeMismatchError as error:
        raise bad_request(str(error)) from error
    if (policy := request.query.text("propagationPolicy")) and not options.get("propagationPolicy"):
        options = replaced_at(options, ("propagationPolicy",), policy)
    if options.get("orphanDependents"):
        options = replaced_at(options, ("propagationPolicy",), "Orphan")
    return options


def _grace_period_s(request: ObjectRequest, options: JsonObject) -> int | None:
    given = options.get("gracePeriodSeconds")
    return request.query.number("gracePeriodSeconds") if given is None else given


def refuse_verb() -> ApiError:
    return not_allowed("the server does not allow this method on the requested resource")
