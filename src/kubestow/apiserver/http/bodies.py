"""The documents clients send, in JSON, YAML or protobuf, checked against the path."""

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from kubestow.api.files import parse_document
from kubestow.api.json_text import extent_of
from kubestow.api.meta import JsonObject
from kubestow.api.yaml_text import LEVELS_MAX
from kubestow.apiserver.http import protobuf
from kubestow.apiserver.http.routing import ApiPath
from kubestow.apiserver.refusals import bad_request
from kubestow.apiserver.schema.builtin import schema_of
from kubestow.apiserver.schema.reading import Path, TypeMismatchError, path_text, read
from kubestow.apiserver.served import ServedResource
from kubestow.cluster.documents import as_object, is_list, is_object
from kubestow.errors import ApiError, DecodeError

_JSON_TYPES: Final = ("", "application/json")
_YAML_TYPES: Final = ("application/yaml", "application/x-yaml")
_TOO_DEEP: Final = f"the body of the request is nested more than {LEVELS_MAX} levels deep"


def decoded_body(body: bytes, content_type: str) -> JsonObject:
    """The object in a body; 415 for an unsupported type, 400 for a body without an object."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type in _JSON_TYPES:
        value = decoded_json(body)
    elif media_type in _YAML_TYPES:
        value = decoded_yaml(body)
    elif media_type == protobuf.CONTENT_TYPE:
        value = protobuf.decode_protobuf(body)
    else:
        raise ApiError(
            "the body of the request was in an unknown format - accepted media types include:"
            f" application/json, application/yaml, {protobuf.CONTENT_TYPE}",
            code=415,
            reason="UnsupportedMediaType",
        )
    if not is_object(value):
        raise bad_request("the body of the request holds no object")
    return value


def decoded_json(body: bytes) -> object:
    try:
        value = msgspec.json.decode(body)
    except RecursionError as error:
        raise bad_request(_TOO_DEEP) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"the body of the request is not JSON: {error}") from error
    if extent_of(value).levels > LEVELS_MAX:
        raise bad_request(_TOO_DEEP)
    return value


def decoded_yaml(body: bytes, repeated: list[str] | None = None) -> object:
    """The value in a YAML text; the lines of keys that a map has twice are added to `repeated`."""
    lines: list[str] = [] if repeated is None else repeated
    try:
        return parse_document(body, name="the body of the request", repeated=lines)
    except DecodeError as error:
        raise bad_request(str(error)) from error


def repeated_fields(body: bytes, content_type: str) -> list[str]:
    """What a server reports about fields that a body, which must decode, has twice."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == protobuf.CONTENT_TYPE:
        return []
    if body.lstrip().startswith((b"{", b"[")):
        try:
            return [f'duplicate field "{path}"' for path in json_duplicates(body)]
        except ValueError:
            pass  # braces may also be YAML
    lines: list[str] = []
    decoded_yaml(body, lines)
    return ["\n  ".join(("yaml: unmarshal errors:", *lines))] if lines else []


def decoded_as(body: bytes, content_type: str, group: str, kind: str) -> JsonObject:
    """The object in a body that must be of this kind in version `v1`; 400 for a wrong type."""
    document = decoded_body(body, content_type)
    try:
        return read(document, schema_of(group, "v1", kind)).document
    except TypeMismatchError as error:
        raise bad_request(
            f'{kind} in version "v1" cannot be handled as a {kind}: {error}'
        ) from error


def require_kind(document: JsonObject, served: ServedResource) -> None:
    """400 if the document is of another kind or version than the path takes."""
    resource = served.resource
    kind, api_version = document.get("kind"), document.get("apiVersion")
    if (api_version or resource.api_version) != resource.api_version:
        raise bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version"
            f" ({resource.api_version})"
        )
    if (kind or resource.kind) != resource.kind:
        raise bad_request(
            f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}:'
            f" this address takes {resource.kind} in version {resource.api_version}"
        )


def for_path(document: JsonObject, path: ApiPath, served: ServedResource) -> JsonObject:
    """The document with the name and namespace of the path; 400 if it contradicts the path."""
    metadata = as_object(document.get("metadata"))
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if path.name and name and name != path.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({path.name})"
        )
    if namespace and namespace != path.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    placed = {**metadata}
    if path.name:
        placed["name"] = path.name
    if served.resource.namespaced:
        placed["namespace"] = path.namespace
    return {**document, "metadata": placed}


class _Repeating(dict[str, Any]):
    """An object of a text that has some of its names twice."""

    repeated: list[str]


def json_duplicates(text: bytes) -> list[str]:
    """The paths of fields that occur twice in a JSON text, which must be valid.

    Of the two values the last one counts. For YAML `api.files` does this.
    """
    is_found = False

    def as_read(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal is_found
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        is_found = True
        repeating = _Repeating(found)
        names = [name for name, _ in pairs]
        repeating.repeated = [name for name in found if names.count(name) > 1]
        return repeating

    document = json.loads(text, object_pairs_hook=as_read)
    return [path_text(path) for path in _repeated(document, ())] if is_found else []


def _repeated(value: Any, path: Path) -> Iterator[Path]:
    if is_object(value):
        if isinstance(value, _Repeating):
            yield from ((*path, name) for name in value.repeated)
        for name, below in value.items():
            yield from _repeated(below, (*path, name))
    elif is_list(value):
        for index, item in enumerate(value):
            yield from _repeated(item, (*path, index))
