"""Who may do what: the administrator everything, others what roles give them.

Roles and bindings are those in the store, plus the three that let users read the server's own
addresses and themselves.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http.authentication import AUTHENTICATED, MASTERS, UNAUTHENTICATED, Subject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.documents import as_list, as_object, objects_in
from kubestow.errors import ApiError

_RBAC: Final = "rbac.authorization.k8s.io"
_PUBLIC: Final[JsonObject] = {
    "verbs": ["get"],
    "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"],
}
_DISCOVERY: Final[JsonObject] = {
    "verbs": ["get"],
    "nonResourceURLs": [
        "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*",
        "/readyz", "/version", "/version/",
    ],
}  # fmt: skip
_SELF: Final[tuple[JsonObject, ...]] = (
    {
        "verbs": ["create"],
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    },
    {
        "verbs": ["create"],
        "apiGroups": ["authentication.k8s.io"],
        "resources": ["selfsubjectreviews"],
    },
)
# Role → groups that have it without a binding, and its rules.
_GIVEN: Final = {
    "system:public-info-viewer": ((AUTHENTICATED, UNAUTHENTICATED), (_PUBLIC,)),
    "system:discovery": ((AUTHENTICATED,), (_DISCOVERY,)),
    "system:basic-user": ((AUTHENTICATED,), _SELF),
}
EVERYTHING: Final[tuple[JsonObject, ...]] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch"}


class Access(NamedTuple):
    """What is requested: a verb on a resource, or on a path that names none."""

    verb: str
    group: str = ""
    # With its subresource: `pods/log`.
    resource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class AccessRules:
    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster

    def reason(self, subject: Subject, access: Access) -> str:
        """Why it is allowed; empty if it is not."""
        if MASTERS in subject.groups:
            return "the administrator may do everything"
        for given_by, rules in self._granted(subject, access.namespace):
            if any(_allows(rule, access) for rule in rules):
                return f"RBAC: allowed by {given_by}"
        return ""

    def rules(self, subject: Subject, namespace: str) -> list[JsonObject]:
        """All rules that hold for a user in a namespace."""
        if MASTERS in subject.groups:
            return list(EVERYTHING)
        return [rule for _, rules in self._granted(subject, namespace) for rule in rules]

    def require(self, subject: Subject, access: Access) -> None:
        """403 unless it is allowed."""
        if not self.reason(subject, access):
            raise ApiError(_denial(subject, access), code=403, reason="Forbidden")

    def _granted(
        self, subject: Subject, namespace: str
    ) -> Iterator[tuple[str, Iterable[JsonObject]]]:
        for role, (groups, rules) in _GIVEN.items():
            if any(group in subject.groups for group in groups):
                yield f'ClusterRole "{role}"', rules
        for binding in self._objects("clusterrolebindings"):
            if _is_bound(binding, subject, ""):
                yield self._rules_of(binding, "")
        for binding in self._objects("rolebindings"):
            own = as_object(binding.get("metadata")).get("namespace", "")
            if namespace and own == namespace and _is_bound(binding, subject, own):
                yield self._rules_of(binding, own)

    def _rules_of(self, binding: JsonObject, namespace: str) -> tuple[str, Iterable[JsonObject]]:
        role = as_object(binding.get("roleRef"))
        kind, name = str(role.get("kind")), str(role.get("name"))
        plural = "roles" if kind == "Role" else "clusterroles"
        found = self._cluster.find(
            self._cluster.resources.named(f"{plural}.{_RBAC}"),
            namespace if kind == "Role" else "",
            name,
        )
        given_by = f'{binding.get("kind")} "{as_object(binding.get("metadata")).get("name")}"'
        text = f'{given_by} of {kind} "{name}"'
        if found is None:
            return text, EVERYTHING if (kind, name) == ("ClusterRole", "cluster-admin") else ()
        return text, objects_in(found.document.get("rules"))

    def _objects(self, plural: str) -> list[JsonObject]:
        resource = self._cluster.resources.named(f"{plural}.{_RBAC}")
        return [stored.document for stored in self._cluster.objects_of(resource)]


def verb_of(method: str, *, has_name: bool, is_watch: bool) -> str:
    """The verb of a request on a resource."""
    if method == "GET":
        return "watch" if is_watch else "get" if has_name else "list"
    if method == "DELETE":
        return "delete" if has_name else "deletecollection"
    return _VERBS.get(method, method.lower())


def _is_bound(binding: JsonObject, subject: Subject, namespace: str) -> bool:
    return any(_is_meant(one, subject, namespace) for one in objects_in(binding.get("subjects")))


def _is_meant(named: JsonObject, subject: Subject, namespace: str) -> bool:
    name = named.get("name")
    match named.get("kind"):
        case "User":
            return name == subject.name
        case "Group":
            return name in subject.groups
        case "ServiceAccount":
            own = named.get("namespace") or namespace
            return subject.name == f"system:serviceaccount:{own}:{name}"
        case _:
            return False


def _allows(rule: JsonObject, access: Access) -> bool:
    if not _has(rule, "verbs", access.verb):
        return False
    if access.path:
        paths = [str(path) for path in as_list(rule.get("nonResourceURLs"))]
        return any(_covers(path, access.path) for path in paths)
    _, slash, subresource = access.resource.partition("/")
    names = as_list(rule.get("resourceNames"))
    return (
        _has(rule, "apiGroups", access.group)
        and (
            _has(rule, "resources", access.resource)
            or bool(slash and f"*/{subresource}" in as_list(rule.get("resources")))
        )
        and (not names or access.name in names)
    )


def _has(rule: JsonObject, field: str, value: str) -> bool:
    values = as_list(rule.get(field))
    return "*" in values or value in values


def _covers(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern


def _denial(subject: Subject, access: Access) -> str:
    if access.path:
        return f'forbidden: User "{subject.name}" cannot {access.verb} path "{access.path}"'
    plural = access.resource.partition("/")[0]
    qualified = f"{plural}.{access.group}" if access.group else plural
    named = f' "{access.name}"' if access.name else ""
    where = f'in the namespace "{access.namespace}"' if access.namespace else "at the cluster scope"
    return (
        f'{qualified}{named} is forbidden: User "{subject.name}" cannot {access.verb} resource'
        f' "{access.resource}" in API group "{access.group}" {where}'
    )
