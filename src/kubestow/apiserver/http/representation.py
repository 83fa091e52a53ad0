"""The form in which a client gets objects: whole, as rows of a table, or only their metadata.

The client lists the forms it accepts in its Accept header, best first:
`application/json;as=Table;v=v1;g=meta.k8s.io,application/json`. The first one that the server
supports is used.
"""

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http.response import JSON
from kubestow.cluster.documents import as_object
from kubestow.errors import ApiError

_ANYTHING: Final = ("", "*/*", "application/*", JSON)
META_VERSION: Final = "meta.k8s.io/v1"


class Form(Enum):
    OBJECT = "object"
    TABLE = "table"
    METADATA = "metadata"


_FORMS: Final = {
    "": Form.OBJECT,
    "Table": Form.TABLE,
    "PartialObjectMetadata": Form.METADATA,
    "PartialObjectMetadataList": Form.METADATA,
}


class MediaType(msgspec.Struct, frozen=True):
    """One entry of an Accept header, such as `application/json;as=Table`."""

    name: str
    parameters: dict[str, str]


def accepted(accept: str) -> Iterator[MediaType]:
    """The media types the client accepts, best first; an empty header accepts anything."""
    for entry in accept.split(","):
        name, *rest = (part.strip() for part in entry.split(";"))
        pairs = (part.partition("=") for part in rest)
        yield MediaType(name.lower(), {key.strip(): value.strip() for key, _, value in pairs})


def negotiate(accept: str) -> Form:
    """The form of the answer; 406 if the client accepts none that the server supports."""
    for media_type in accepted(accept):
        if media_type.name not in _ANYTHING:
            continue
        parameters = media_type.parameters
        if parameters.get("g", "meta.k8s.io") != "meta.k8s.io" or parameters.get("v", "v1") != "v1":
            continue
        form = _FORMS.get(parameters.get("as", ""))
        if form is not None:
            return form
    raise ApiError(
        "only the following media types are accepted: application/json",
        code=406,
        reason="NotAcceptable",
    )


def partial_metadata(document: JsonObject) -> JsonObject:
    """An object reduced to its metadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": META_VERSION,
        "metadata": as_object(document.get("metadata")),
    }


def partial_metadata_list(documents: Iterable[JsonObject], metadata: JsonObject) -> JsonObject:
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": META_VERSION,
        "metadata": metadata,
        "items": [partial_metadata(document) for document in documents],
    }
