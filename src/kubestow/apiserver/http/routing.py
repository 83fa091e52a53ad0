"""What the path of a request names: a resource, an object, a subresource.

    /api/v1/nodes/n1/status
    /api/v1/namespaces/shop/pods/web-1/binding
    /apis/apps/v1/namespaces/shop/deployments

Not here: whether the server has it (`served`), paths that name no resource (`server`).
"""

from typing import Final, NamedTuple

# Subresources of a namespace; any other name after a namespace is a resource inside it.
_NAMESPACE_PARTS: Final = ("status", "finalize")


class ApiPath(NamedTuple):
    """The parts of a path; empty texts for parts that it lacks."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse_path(path: str) -> ApiPath | None:
    """What a path names; None if it names no resource."""
    steps = [step for step in path.split("/") if step]
    match steps:
        case ["api", version, *rest] if rest:
            return _parse_rest("", version, rest)
        case ["apis", group, version, *rest] if rest:
            return _parse_rest(group, version, rest)
        case _:
            return None


def _parse_rest(group: str, version: str, rest: list[str]) -> ApiPath:
    namespace = ""
    is_inside = len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in _NAMESPACE_PARTS
    if is_inside:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "")[:3]
    if len(rest) > 3:
        subresource = "/".join(rest[2:])
    return ApiPath(group, version, plural, namespace, name, subresource)
