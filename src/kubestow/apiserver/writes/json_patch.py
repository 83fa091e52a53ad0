"""JSON Patch (RFC 6902): a list of operations, applied in order, all of them or none.

Paths are JSON Pointers (RFC 6901). As in a real server, an operation that does not match the
document is a 422, an invalid patch a 400.

Invariant: neither the document nor the patch is modified.
"""

from collections.abc import Callable
from typing import Final, NoReturn

from kubestow.api.meta import Json, JsonObject
from kubestow.apiserver.refusals import bad_request
from kubestow.cluster.documents import as_object, is_list, is_object
from kubestow.errors import InvalidError

CONTENT_TYPE: Final = "application/json-patch+json"
# The limit of an API server: each operation may copy the whole document.
OPERATIONS_MAX: Final = 10_000

# Any: a JSON value of any type.


def json_patch(document: JsonObject, operations: object) -> JsonObject:
    """The patched document."""
    if not is_list(operations):
        raise bad_request("error decoding patch: expected a JSON array of operations")
    if len(operations) > OPERATIONS_MAX:
        raise bad_request(f"the patch has {len(operations)} operations, at most {OPERATIONS_MAX}")
    value: Json = document
    for operation in operations:
        value = _applied(value, as_object(operation))
    if not is_object(value):
        raise InvalidError("the patch leaves no object")
    return value


def _applied(document: Json, operation: JsonObject) -> Json:
    path = _pointer(operation, "path")
    match operation.get("op"):
        case "add":
            return _added(document, path, _value(operation))
        case "remove":
            return _removed(document, path)
        case "replace":
            _found(document, path)
            return _changed(document, path, lambda _: _value(operation))
        case "copy":
            return _added(document, path, _found(document, _pointer(operation, "from")))
        case "move":
            source = _pointer(operation, "from")
            value = _found(document, source)
            return _added(_removed(document, source), path, value)
        case "test":
            if _found(document, path) != operation.get("value"):
                raise InvalidError(
                    f"testing value {operation['path']} failed: it is not what the patch expects"
                )
            return document
        case unknown:
            raise bad_request(f'unexpected kind of operation "{unknown}" in a JSON patch')


def _pointer(operation: JsonObject, field: str) -> list[str]:
    text = operation.get(field)
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise bad_request(f'the "{field}" of a JSON patch operation is {text!r}, expected "/…"')
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


def _value(operation: JsonObject) -> Json:
    if "value" not in operation:
        raise bad_request(f'operation "{operation.get("op")}" of a JSON patch has no "value"')
    return operation["value"]


def _found(document: Json, path: list[str]) -> Json:
    value = document
    for step in path:
        if is_object(value) and step in value:
            value = value[step]
        elif is_list(value):
            value = value[_index(step, len(value) - 1, path)]
        else:
            _missing(path)
    return value


def _changed(document: Json, path: list[str], change: Callable[[Json], Json]) -> Json:
    """The document with the value at the path changed, copied only along the path."""
    if not path:
        return change(document)
    step, rest = path[0], path[1:]
    if is_list(document):
        index = _index(step, len(document) - 1, path)
        return [*document[:index], _changed(document[index], rest, change), *document[index + 1 :]]
    if not is_object(document):
        _missing(path)
    return {**document, step: _changed(document.get(step), rest, change)}


def _added(document: Json, path: list[str], value: Json) -> Json:
    if not path:
        return value
    above, last = path[:-1], path[-1]
    _found(document, above)

    def insert(parent: Json) -> Json:
        if is_list(parent):
            index = len(parent) if last == "-" else _index(last, len(parent), path)
            return [*parent[:index], value, *parent[index:]]
        if not is_object(parent):
            _missing(path)
        return {**parent, last: value}

    return _changed(document, above, insert)


def _removed(document: Json, path: list[str]) -> Json:
    if not path:
        _missing(path)
    _found(document, path)
    above, last = path[:-1], path[-1]

    def leave_out(parent: Json) -> Json:
        if is_list(parent):
            index = _index(last, len(parent) - 1, path)
            return [*parent[:index], *parent[index + 1 :]]
        return {key: value for key, value in as_object(parent).items() if key != last}

    return _changed(document, above, leave_out)


def _index(step: str, index_max: int, path: list[str]) -> int:
    if not step.isdecimal() or (step.startswith("0") and step != "0") or int(step) > index_max:
        _missing(path)
    return int(step)


def _missing(path: list[str]) -> NoReturn:
    pointer = "".join(f"/{step}" for step in path)
    raise InvalidError(f'the JSON patch names "{pointer}", which does not exist')
