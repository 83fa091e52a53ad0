"""Error responses as exceptions."""

import msgspec
import pytest

from kubestow.api.meta import JsonObject
from kubestow.cluster.http.error_response import TOO_LARGE_VERSION, response_error
from kubestow.errors import ApiError, ConflictError, GoneError, InvalidError, NotFoundError


def status(code: int, reason: str, message: str, **more: object) -> bytes:
    document: JsonObject = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
        **more,
    }
    return msgspec.json.encode(document)


TOO_LARGE = "Timeout: Too large resource version: 9, current: 5"
CAUSES = {"causes": [{"reason": TOO_LARGE_VERSION, "message": "Too large resource version"}]}


@pytest.mark.parametrize(
    ("code", "body", "cls", "reason", "message"),
    [
        pytest.param(
            404, status(404, "NotFound", 'pods "a" not found'),
            NotFoundError, "NotFound", 'pods "a" not found', id="not-found",
        ),
        pytest.param(
            409, status(409, "AlreadyExists", 'pods "a" already exists'),
            ConflictError, "AlreadyExists", 'pods "a" already exists', id="exists",
        ),
        pytest.param(
            409, status(409, "Conflict", 'pod a is already assigned to node "n"'),
            ConflictError, "Conflict", 'pod a is already assigned to node "n"', id="conflict",
        ),
        pytest.param(
            410, status(410, "Expired", "too old resource version: 1 (2)"),
            GoneError, "Expired", "too old resource version: 1 (2)", id="expired",
        ),
        pytest.param(
            422, status(422, "Invalid", 'Pod "a" is invalid: spec'),
            InvalidError, "Invalid", 'Pod "a" is invalid: spec', id="invalid",
        ),
        pytest.param(
            403, status(403, "Forbidden", "no", details={"kind": "pods", "causes": None}),
            ApiError, "Forbidden", "no", id="forbidden",
        ),
        pytest.param(
            504, status(504, "Timeout", TOO_LARGE),
            ApiError, TOO_LARGE_VERSION, TOO_LARGE, id="too-large-by-text",
        ),
        pytest.param(
            504, status(504, "Timeout", "later", details=CAUSES),
            ApiError, TOO_LARGE_VERSION, "later", id="too-large-by-cause",
        ),
        pytest.param(
            504, status(504, "Timeout", "slow"), ApiError, "Timeout", "slow", id="timeout",
        ),
        pytest.param(
            500, status(500, "", ""), ApiError, "InternalError",
            "the server answered with 500 InternalError", id="status-without-message",
        ),
        pytest.param(
            404, b"404 page not found\n", NotFoundError, "NotFound",
            "GET /apis/x was answered with 404: 404 page not found", id="plain-text",
        ),
        pytest.param(
            502, b"<html>" + b"x" * 1000, ApiError, "Unknown",
            f"GET /apis/x was answered with 502: <html>{'x' * 194}…", id="a-page",
        ),
        pytest.param(
            503, b"", ApiError, "ServiceUnavailable",
            "GET /apis/x was answered with 503", id="nothing",
        ),
        pytest.param(
            500, b'{"kind":"Pod"}', ApiError, "InternalError",
            'GET /apis/x was answered with 500: {"kind":"Pod"}', id="another-object",
        ),
        pytest.param(
            500, b"\xff\xfe", ApiError, "InternalError",
            "GET /apis/x was answered with 500: \ufffd\ufffd", id="no-text",
        ),
    ],
)  # fmt: skip
def test_the_servers_message_is_kept(
    code: int, body: bytes, cls: type[ApiError], reason: str, message: str
):
    error = response_error(code, body, method="GET", path="/apis/x?watch=true")
    assert type(error) is cls
    assert (error.code, error.reason, str(error)) == (code, reason, message)
