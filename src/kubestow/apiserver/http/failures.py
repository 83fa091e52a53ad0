"""`Status` objects: the answer to a refused request, or to a success without an object.

Clients decide by `reason` and `details`, people read `message`. kubectl builds its own text for an
invalid object from the causes, so each field error becomes one.
"""

from typing import Final

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http.response import ApiResponse
from kubestow.apiserver.writes.server_side_apply import ApplyConflictError
from kubestow.cluster.resources import ApiResource
from kubestow.errors import ApiError, DecodeError

# The start of a field error's text, and the reason of its cause.
_CAUSES: Final = (
    ("Required value", "FieldValueRequired"),
    ("Duplicate value", "FieldValueDuplicate"),
    ("Unsupported value", "FieldValueNotSupported"),
    ("Forbidden", "FieldValueForbidden"),
    ("Too many", "FieldValueTooMany"),
    ("Too long", "FieldValueTooLong"),
)
_WRONG_TYPE: Final = " in body must be of type "
_RETRY_AFTER_S: Final = {504: 1}


def failure_answer(
    error: ApiError | DecodeError, *, resource: ApiResource | None = None, name: str = ""
) -> ApiResponse:
    """The answer to a request that was refused."""
    status = failure_status(error, resource=resource, name=name)
    headers: dict[str, str] = {}
    if (retry_after_s := _RETRY_AFTER_S.get(status["code"])) is not None:
        headers["Retry-After"] = str(retry_after_s)
    return ApiResponse(msgspec.json.encode(status), status=status["code"], headers=headers)


def failure_status(
    error: ApiError | DecodeError, *, resource: ApiResource | None = None, name: str = ""
) -> JsonObject:
    if isinstance(error, DecodeError):
        error = ApiError(str(error), code=400, reason="BadRequest")
    details = _details(error, resource, name)
    if error.causes:
        details["causes"] = [field_cause(text) for text in error.causes]
    if isinstance(error, ApplyConflictError):
        details["causes"] = [
            {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": field}
            for who, field in error.conflicts
        ]
    if error.code == 504:
        # By this cause informers see that the version is newer than the server's, not too old.
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        details["causes"] = [cause]
    if (retry_after_s := _RETRY_AFTER_S.get(error.code)) is not None:
        details["retryAfterSeconds"] = retry_after_s
    status = _status("Failure", error.code)
    status |= {"message": str(error), "reason": error.reason}
    return status | ({"details": details} if details else {})


def _details(error: ApiError, resource: ApiResource | None, name: str) -> JsonObject:
    """What the refusal is about."""
    if error.causes:
        kind, _, group = error.kind.partition(".")
        details = {"group": group, "kind": kind, "name": error.name}
    elif resource is None or error.code in (400, 422):
        # With details kubectl would print only kind and name of an error, without the message.
        return {}
    else:
        details = {"group": resource.group, "kind": resource.plural, "name": error.name or name}
    return {key: value for key, value in details.items() if value}


def success_status(
    *, resource: ApiResource | None = None, name: str = "", uid: str = "", code: int = 200
) -> JsonObject:
    status = _status("Success", code)
    if resource is not None:
        details = {"name": name, "group": resource.group, "kind": resource.plural, "uid": uid}
        status["details"] = {key: value for key, value in details.items() if value}
    return status


def field_cause(text: str) -> JsonObject:
    """A field error, `spec.replicas: Invalid value: -1: …`, as a cause."""
    field, separator, message = text.partition(": ")
    if not separator:
        return {"reason": "FieldValueInvalid", "message": text}
    reason = next(
        (reason for words, reason in _CAUSES if message.startswith(words)), "FieldValueInvalid"
    )
    if _WRONG_TYPE in message:
        reason = "FieldValueTypeInvalid"
    return {"reason": reason, "message": message, "field": field}


def _status(outcome: str, code: int) -> JsonObject:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": outcome,
        "code": code,
    }
