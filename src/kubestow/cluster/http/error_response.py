"""An error response as an `ApiError` with the server's own message.

An API server sends a Status object; its message is passed on unchanged, because people and
controllers match on it. A proxy or a load balancer in between sends none, so such answers are
described by code and text.
"""

from typing import Final

import msgspec

from kubestow.errors import ApiError, ConflictError, GoneError, InvalidError, NotFoundError

TEXT_LENGTH_MAX: Final = 200  # of an answer that is not a Status, as quoted in an error
TOO_LARGE_VERSION: Final = "ResourceVersionTooLarge"
_TOO_LARGE_TEXT: Final = "Too large resource version"
# Reasons the server gives where it sends no Status, by code.
_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_CLASSES: Final[dict[int, type[ApiError]]] = {
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
}


class StatusCause(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""


class StatusDetails(msgspec.Struct, frozen=True):
    causes: tuple[StatusCause, ...] | None = None


class ApiStatus(msgspec.Struct, frozen=True):
    """The object that an API server returns with an error."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


_DECODER: Final = msgspec.json.Decoder(ApiStatus)


def response_error(code: int, body: bytes, *, method: str, path: str) -> ApiError:
    """The error of an answer; the caller raises it."""
    status = _status_in(body)
    if status is None:
        text = body.decode(errors="replace").strip()
        if len(text) > TEXT_LENGTH_MAX:
            text = text[:TEXT_LENGTH_MAX] + "…"
        # The query may be long and does not help.
        message = f"{method} {path.partition('?')[0]} was answered with {code}"
        return _error(code, _REASONS.get(code, ""), f"{message}: {text}" if text else message)
    return status_error(status, code)


def status_error(status: ApiStatus, code: int = 0) -> ApiError:
    """The error of a Status object, such as a watch sends when it cannot continue."""
    code = status.code or code or 500
    reason = status.reason or _REASONS.get(code, "")
    if _is_too_large_version(status):
        reason = TOO_LARGE_VERSION
    message = status.message or f"the server answered with {code} {reason}".rstrip()
    return _error(code, reason, message)


def _error(code: int, reason: str, message: str) -> ApiError:
    return _CLASSES.get(code, ApiError)(message, code=code, reason=reason or "Unknown")


def _is_too_large_version(status: ApiStatus) -> bool:
    """Whether we sent a version that this server has not reached (spec 09 §4.3)."""
    if status.reason != "Timeout":
        return False
    details = status.details
    causes = details.causes if details is not None else None
    return _TOO_LARGE_TEXT in status.message or any(
        cause.reason == TOO_LARGE_VERSION or _TOO_LARGE_TEXT in cause.message
        for cause in causes or ()
    )


def _status_in(body: bytes) -> ApiStatus | None:
    try:
        status = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return status if status.kind == "Status" else None
