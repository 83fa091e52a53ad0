"""The errors of an API server.

Controllers and people match on these texts and reasons, so all of them are built here, once. Each
function returns the error; the caller raises it.
"""

from kubestow.cluster.resources import ApiResource
from kubestow.errors import ApiError, ConflictError, GoneError, InvalidError, NotFoundError

_MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
_CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result."
    " You must start a new list without the continue parameter."
)


def not_found(resource: ApiResource, name: str) -> NotFoundError:
    return NotFoundError(f'{resource.qualified_name} "{name}" not found')


def no_such_resource() -> NotFoundError:
    """The path names a resource that is not served."""
    return NotFoundError("the server could not find the requested resource")


def not_allowed(message: str) -> ApiError:
    """The resource exists, but does not support this verb."""
    return ApiError(message, code=405, reason="MethodNotAllowed")


def already_exists(resource: ApiResource, name: str) -> ConflictError:
    error = ConflictError(
        f'{resource.qualified_name} "{name}" already exists', reason="AlreadyExists"
    )
    error.name = name
    return error


def conflict(resource: ApiResource, name: str, detail: str, subresource: str = "") -> ConflictError:
    what = f"{resource.qualified_name}/{subresource}" if subresource else resource.qualified_name
    return ConflictError(f'Operation cannot be fulfilled on {what} "{name}": {detail}')


def modified(resource: ApiResource, name: str) -> ConflictError:
    """The resource version given is not that of the stored object."""
    return conflict(resource, name, _MODIFIED)


def precondition_failed(
    resource: ApiResource, name: str, *, field: str, given: str, found: str, subresource: str = ""
) -> ConflictError:
    """The request is for a certain object, and another one of that name exists."""
    return conflict(
        resource,
        name,
        f"Precondition failed: {field} in precondition: {given}, {field} in object meta: {found}",
        subresource,
    )


def invalid(kind: str, name: str, details: list[str]) -> InvalidError:
    """The result of validation; `details` are field errors, each naming field and value."""
    text = details[0] if len(details) == 1 else f"[{', '.join(details)}]"
    error = InvalidError(f'{kind} "{name}" is invalid: {text}')
    error.causes = tuple(details)
    error.kind, error.name = kind, name
    return error


def qualified_kind(resource: ApiResource) -> str:
    """The kind as refusals name it: `Pod`, `Deployment.apps`."""
    return f"{resource.kind}.{resource.group}" if resource.group else resource.kind


def forbidden(resource: ApiResource, name: str, detail: str) -> ApiError:
    error = ApiError(
        f'{resource.qualified_name} "{name}" is forbidden: {detail}', code=403, reason="Forbidden"
    )
    error.name = name
    return error


def bad_request(message: str) -> ApiError:
    return ApiError(message, code=400, reason="BadRequest")


def invalid_version(text: str, problem: str) -> ApiError:
    """The resource version given is no number."""
    return bad_request(
        f'invalid resource version: resourceVersion: Invalid value: "{text}":'
        f' strconv.ParseUint: parsing "{text}": {problem}'
    )


def too_old_version(asked: int, oldest: int) -> GoneError:
    return GoneError(f"too old resource version: {asked} ({oldest})")


def continue_expired() -> GoneError:
    return GoneError(_CONTINUE_EXPIRED)


def too_large_version(asked: int, current: int) -> ApiError:
    """The caller has seen a version this server has not reached; it may retry later."""
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return ApiError(message, code=504, reason="Timeout")
