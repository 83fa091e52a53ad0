"""The answer to a request, independent of the HTTP library."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from kubestow.api.meta import JsonObject

JSON: Final = "application/json"


class ApiResponse(NamedTuple):
    body: bytes
    status: int = 200
    content_type: str = JSON
    headers: Mapping[str, str] = {}
    # Texts for people, each sent as a `Warning` header.
    warnings: tuple[str, ...] = ()


def json_response(document: JsonObject, *, status: int = 200) -> ApiResponse:
    return ApiResponse(msgspec.json.encode(document), status=status)
