"""Reviews: a client creates an object to query its user, a token or a permission.

The embedded server has one user, who may do everything. The reviews exist for programs that check
permissions first, such as `kubectl auth` or a scheduler that protects its own port.
"""

from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http.authentication import Authentication
from kubestow.apiserver.http.bodies import decoded_body
from kubestow.apiserver.http.discovery import REVIEWS
from kubestow.apiserver.http.response import ApiResponse, json_response
from kubestow.apiserver.http.routing import ApiPath
from kubestow.cluster.documents import value_at

USER: Final[JsonObject] = {
    "username": "kubernetes-admin",
    "groups": ["system:masters", "system:authenticated"],
}
_KINDS: Final = {(review.group, review.plural): review.kind for review in REVIEWS}
_EVERYTHING: Final[JsonObject] = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
_EVERY_PATH: Final[JsonObject] = {"verbs": ["*"], "nonResourceURLs": ["*"]}


def is_review(path: ApiPath) -> bool:
    return (path.group, path.plural) in _KINDS and path.version == "v1" and not path.name


def review(
    path: ApiPath, body: bytes, content_type: str, authentication: Authentication
) -> ApiResponse:
    """The review with its result as status."""
    document = decoded_body(body, content_type)
    kind = _KINDS[path.group, path.plural]
    match kind:
        case "TokenReview":
            token = value_at(document, "spec", "token") or ""
            is_known = authentication.is_token(token)
            status = {"authenticated": is_known, "user": USER if is_known else {}}
        case "SelfSubjectReview":
            status = {"userInfo": USER}
        case "SelfSubjectRulesReview":
            status: JsonObject = {
                "resourceRules": [_EVERYTHING],
                "nonResourceRules": [_EVERY_PATH],
                "incomplete": False,
            }
        case _:
            status = {"allowed": True, "reason": "an embedded cluster allows everything"}
    return json_response(
        {
            "metadata": {},
            **document,
            "kind": kind,
            "apiVersion": f"{path.group}/v1",
            "status": status,
        },
        status=201,
    )
