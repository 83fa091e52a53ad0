"""Reviews: a client creates an object to query its user, a token or a permission.

`kubectl auth` uses them, and servers that let the API server decide who may read from them.
"""

from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http.access import Access, AccessRules
from kubestow.apiserver.http.authentication import Authentication, Subject
from kubestow.apiserver.http.bodies import decoded_as
from kubestow.apiserver.http.discovery import REVIEWS
from kubestow.apiserver.http.response import ApiResponse, json_response
from kubestow.apiserver.http.routing import ApiPath
from kubestow.apiserver.refusals import invalid
from kubestow.cluster.documents import as_list, as_object, value_at

_KINDS: Final = {(review.group, review.plural): review.kind for review in REVIEWS}


def is_review(path: ApiPath) -> bool:
    return (path.group, path.plural) in _KINDS and path.version == "v1" and not path.name


class Reviews:
    def __init__(self, authentication: Authentication, rules: AccessRules) -> None:
        self._authentication = authentication
        self._rules = rules

    def answer(
        self, path: ApiPath, body: bytes, content_type: str, subject: Subject
    ) -> ApiResponse:
        """The review with its result as status."""
        kind = _KINDS[path.group, path.plural]
        document = decoded_as(body, content_type, path.group, kind)
        status = self._status(kind, as_object(document.get("spec")), subject)
        answer: JsonObject = {"kind": kind, "apiVersion": f"{path.group}/v1", "metadata": {}}
        return json_response({**answer, **document, "status": status}, status=201)

    def _status(self, kind: str, spec: JsonObject, subject: Subject) -> JsonObject:
        match kind:
            case "TokenReview":
                owner = self._authentication.subject_of_token(spec.get("token") or "")
                if owner is None:
                    return {"authenticated": False, "user": {}, "error": "invalid bearer token"}
                return {"authenticated": True, "user": owner.document}
            case "SelfSubjectReview":
                return {"userInfo": subject.document}
            case "SelfSubjectRulesReview":
                rules = self._rules.rules(subject, spec.get("namespace") or "")
                return {
                    "resourceRules": [rule for rule in rules if "resources" in rule],
                    "nonResourceRules": [rule for rule in rules if "nonResourceURLs" in rule],
                    "incomplete": False,
                }
            case "SelfSubjectAccessReview":
                return self._access_status(kind, spec, subject)
            case _:
                return self._access_status(kind, spec, _reviewed(kind, spec))

    def _access_status(self, kind: str, spec: JsonObject, subject: Subject) -> JsonObject:
        access = _requested(kind, spec)
        reason = self._rules.reason(subject, access)
        return {"allowed": bool(reason), **({"reason": reason} if reason else {})}


def _reviewed(kind: str, spec: JsonObject) -> Subject:
    name, groups = spec.get("user") or "", tuple(as_list(spec.get("groups")))
    if not name and not groups:
        detail = 'spec.user: Invalid value: "": at least one of user or group must be specified'
        raise invalid(f"{kind}.authorization.k8s.io", "", [detail])
    return Subject(name, groups)


def _requested(kind: str, spec: JsonObject) -> Access:
    wanted, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (wanted is None) == (path is None):
        rule = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        detail = f"spec.resourceAttributes: Invalid value: null: {rule}"
        raise invalid(f"{kind}.authorization.k8s.io", "", [detail])
    if path is not None:
        found = as_object(path)
        return Access(verb=found.get("verb") or "", path=found.get("path") or "/")
    found = as_object(wanted)
    subresource = found.get("subresource")
    plural: str = found.get("resource") or ""
    return Access(
        verb=found.get("verb") or "",
        group=found.get("group") or "",
        resource=f"{plural}/{subresource}" if subresource else plural,
        namespace=value_at(found, "namespace") or "",
        name=found.get("name") or "",
    )
