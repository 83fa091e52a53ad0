"""Requests to subresources: scale, binding, eviction, token, finalize.

Not here: those that write a part of the object itself (`verbs`, `parts`).
"""

from collections.abc import Callable
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.eviction import evict
from kubestow.apiserver.http.authentication import ISSUER, Authentication
from kubestow.apiserver.http.bodies import decoded_as, decoded_body
from kubestow.apiserver.http.cells import NONE, selector_text
from kubestow.apiserver.http.failures import success_status
from kubestow.apiserver.http.parts import PARTS
from kubestow.apiserver.http.response import ApiResponse, json_response
from kubestow.apiserver.http.subresource_table import subresources_of
from kubestow.apiserver.http.verbs import (
    Edit,
    ObjectRequest,
    Verbs,
    edit_of_patch,
    refuse_verb,
    under_conditions,
)
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.refusals import invalid, no_such_resource
from kubestow.apiserver.schema.builtin import schema_of
from kubestow.apiserver.served import ScalePaths
from kubestow.apiserver.writes.server_side_apply import taken_over
from kubestow.clock import NANOSECONDS, Clock
from kubestow.cluster.documents import as_list, as_object, replaced_at, value_at, whole_seconds
from kubestow.cluster.resources import NAMESPACES, PODS, SERVICE_ACCOUNTS
from kubestow.errors import ApiError

_NO_CONTAINERS: Final = (
    "pods of an embedded cluster run no containers: there are no logs, and nothing to attach to"
)
_NEEDS_CONTAINERS: Final = ("log", "exec", "attach", "portforward", "proxy")


_TOKEN_LIFETIME_S: Final = 3_600
_TOKEN_LIFETIME_S_MIN: Final = 600
_TOKEN_LIFETIME_S_MAX: Final = 2**32


class Subresources:
    def __init__(
        self, cluster: MemoryCluster, clock: Clock, verbs: Verbs, authentication: Authentication
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._verbs = verbs
        self._authentication = authentication

    def handle(self, method: str, request: ObjectRequest) -> ApiResponse:
        """Answer a request to a subresource."""
        resource, name = request.served.resource, request.path.subresource
        if resource is PODS and name.partition("/")[0] in _NEEDS_CONTAINERS:
            raise ApiError(_NO_CONTAINERS, code=501, reason="NotImplemented")
        if not any(name == sub.name for sub in subresources_of(resource)):
            raise no_such_resource()
        handler = self._handlers().get((name, method))
        if handler is None:
            raise refuse_verb()
        return handler(request)

    def _handlers(self) -> dict[tuple[str, str], Callable[[ObjectRequest], ApiResponse]]:
        parts = {
            (name, method): handler
            for name in ("status", *PARTS)
            for method, handler in (
                ("GET", self._verbs.get),
                ("PUT", self._verbs.update),
                ("PATCH", self._verbs.patch),
            )
        }
        return parts | {
            ("scale", "GET"): self._get_scale,
            ("scale", "PUT"): self._update_scale,
            ("scale", "PATCH"): self._patch_scale,
            ("binding", "POST"): self.bind,
            ("eviction", "POST"): self._evict,
            ("finalize", "PUT"): self._finalize,
            ("token", "POST"): self._new_token,
        }

    # --- Scale --------------------------------------------------------------------------------

    def _get_scale(self, request: ObjectRequest) -> ApiResponse:
        stored = self._cluster.get(request.served.stored, *request.key)
        return json_response(scale_of(stored.document, request.served.scale))

    def _update_scale(self, request: ObjectRequest) -> ApiResponse:
        document = _sent(request, "autoscaling", "Scale")
        return self._rescale(request, lambda _: document)

    def _patch_scale(self, request: ObjectRequest) -> ApiResponse:
        schema = schema_of("autoscaling", "v1", "Scale")
        return self._rescale(request, edit_of_patch(request.body, request.media_type, schema))

    def _rescale(self, request: ObjectRequest, edit: Edit) -> ApiResponse:
        writer, paths = self._verbs.writer(request), request.served.scale

        def rescaled(old: JsonObject) -> JsonObject:
            scale = edit(scale_of(old, paths))
            replicas = value_at(scale, "spec", "replicas") or 0
            if not isinstance(replicas, int) or replicas < 0:
                detail = "must be greater than or equal to 0"
                where = f"spec.replicas: Invalid value: {replicas}: {detail}"
                raise invalid("Scale", request.path.name, [where])
            new = under_conditions(replaced_at(old, paths.spec, replicas), scale)
            return taken_over(old, new, writer, request.served.stored_schema)

        with self._verbs.maybe_dry_run(request):
            stored = self._cluster.change(request.served.stored, *request.key, rescaled)
        return json_response(scale_of(stored.document, paths))

    # --- Service accounts ---------------------------------------------------------------------

    def _new_token(self, request: ObjectRequest) -> ApiResponse:
        account = self._cluster.get(SERVICE_ACCOUNTS, *request.key)
        document = _sent(request, "authentication.k8s.io", "TokenRequest")
        spec = as_object(document.get("spec"))
        lifetime_s: int = spec.get("expirationSeconds") or _TOKEN_LIFETIME_S
        rule = ""
        if lifetime_s < _TOKEN_LIFETIME_S_MIN:
            rule = "may not specify a duration less than 10 minutes"
        elif lifetime_s > _TOKEN_LIFETIME_S_MAX:
            rule = "may not specify a duration larger than 2^32 seconds"
        if rule:
            detail = f"spec.expirationSeconds: Invalid value: {lifetime_s}: {rule}"
            raise invalid("TokenRequest.authentication.k8s.io", request.path.name, [detail])
        audiences = as_list(spec.get("audiences")) or [ISSUER]
        token = self._authentication.new_token(account, audiences, lifetime_s)
        expiry = whole_seconds(self._clock.now_ns() + lifetime_s * NANOSECONDS)
        answer: JsonObject = {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": account.name, "namespace": request.path.namespace},
            "spec": {**spec, "audiences": audiences, "expirationSeconds": lifetime_s},
            "status": {"token": token, "expirationTimestamp": expiry},
        }
        return json_response(answer, status=201)

    # --- Pods ---------------------------------------------------------------------------------

    def bind(self, request: ObjectRequest) -> ApiResponse:
        """Place a pod; the pod is named by the path, or by the binding itself."""
        binding = _sent(request, "", "Binding")
        metadata, target = as_object(binding.get("metadata")), as_object(binding.get("target"))
        if target.get("kind", "Node") not in ("", "Node"):
            detail = f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node"'
            raise invalid("Binding", metadata.get("name", ""), [detail])
        with self._verbs.maybe_dry_run(request):
            self._cluster.bind(
                request.path.namespace,
                request.path.name or metadata.get("name") or "",
                target.get("name") or "",
                uid=metadata.get("uid") or "",
            )
        return json_response(success_status(code=201), status=201)

    def _evict(self, request: ObjectRequest) -> ApiResponse:
        eviction = _sent(request, "policy", "Eviction")
        options = as_object(eviction.get("deleteOptions"))
        pod = self._cluster.get(PODS, *request.key)
        preconditions = as_object(options.get("preconditions"))
        with self._verbs.maybe_dry_run(request, options):
            evict(
                self._cluster,
                pod,
                now=whole_seconds(self._clock.now_ns()),
                uid=preconditions.get("uid") or "",
                resource_version=preconditions.get("resourceVersion") or "",
                grace_period_s=options.get("gracePeriodSeconds"),
            )
        return json_response(success_status(code=201), status=201)

    # --- Namespaces ---------------------------------------------------------------------------

    def _finalize(self, request: ObjectRequest) -> ApiResponse:
        document = decoded_body(request.body, request.content_type)
        if value_at(document, "spec", "finalizers"):
            return json_response(self._cluster.get(NAMESPACES, "", request.path.name).document)
        return json_response(self._cluster.finalize_namespace(request.path.name).document)


def _sent(request: ObjectRequest, group: str, kind: str) -> JsonObject:
    return decoded_as(request.body, request.content_type, group, kind)


def scale_of(document: JsonObject, paths: ScalePaths) -> JsonObject:
    """The Scale of a workload: desired and current replicas, and the selector of its pods."""
    metadata = as_object(document.get("metadata"))
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    if paths.selector:
        selector = value_at(document, *paths.selector) or ""
    else:
        selector = selector_text(value_at(document, "spec", "selector"))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": value_at(document, *paths.spec) or 0},
        "status": {
            "replicas": value_at(document, *paths.status) or 0,
            "selector": "" if selector == NONE else selector,
        },
    }
