"""Discovery: the groups, versions, resources and verbs that the server serves.

In two forms: one document per group and version, and, for clients that accept it, everything at
once (aggregated discovery), which saves kubectl a dozen requests.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from kubestow.api.meta import JsonObject
from kubestow.apiserver.custom.definitions import version_order
from kubestow.apiserver.http.representation import accepted
from kubestow.apiserver.http.subresource_table import SubresourceInfo, subresources_of
from kubestow.apiserver.refusals import no_such_resource
from kubestow.apiserver.served import ServedTable
from kubestow.cluster.resources import ApiResource

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Virtual(NamedTuple):
    """A resource whose objects are answered and not stored."""

    group: str
    plural: str
    kind: str
    namespaced: bool = False


REVIEWS: Final = (
    Virtual("authentication.k8s.io", "tokenreviews", "TokenReview"),
    Virtual("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview"),
    Virtual("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    Virtual("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    Virtual("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview"),
    Virtual("authorization.k8s.io", "localsubjectaccessreviews", "LocalSubjectAccessReview", True),
)
_VIRTUAL: Final = (*REVIEWS, Virtual("", "bindings", "Binding", True))


class Discovery:
    """The documents at the discovery paths."""

    def __init__(self, served: ServedTable, *, address: str = "") -> None:
        """`address` is the host and port under which clients reach the server."""
        self._served = served
        self._address = address

    def answer(self, path: str, accept: str) -> JsonObject | None:
        """The document at a discovery path; None for any other path."""
        steps = [step for step in path.split("/") if step]
        is_aggregated = accepts_aggregated(accept)
        match steps:
            case ["api"]:
                return self._aggregated([""]) if is_aggregated else self._core_versions()
            case ["apis"]:
                groups = [group for group in self._groups() if group]
                return self._aggregated(groups) if is_aggregated else self._group_list(groups)
            case ["api", version]:
                return self._resource_list("", version)
            case ["apis", group]:
                return {"kind": "APIGroup", "apiVersion": "v1", **self._group(group)}
            case ["apis", group, version]:
                return self._resource_list(group, version)
            case _:
                return None

    def content_type(self, path: str, accept: str) -> str:
        is_root = path.strip("/") in ("api", "apis")
        return AGGREGATED if is_root and accepts_aggregated(accept) else "application/json"

    # --- Groups and versions ------------------------------------------------------------------

    def _groups(self) -> dict[str, list[str]]:
        """The versions of each group, best first."""
        groups: dict[str, list[str]] = {}
        for served in self._served:
            versions = groups.setdefault(served.resource.group, [])
            if served.resource.version not in versions:
                versions.append(served.resource.version)
        for virtual in _VIRTUAL:
            groups.setdefault(virtual.group, ["v1"])
        for versions in groups.values():
            versions.sort(key=version_order)
        return groups

    def _core_versions(self) -> JsonObject:
        address = {"clientCIDR": "0.0.0.0/0", "serverAddress": self._address}
        return {
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [address],
        }

    def _group_list(self, groups: Iterable[str]) -> JsonObject:
        return {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [self._group(group) for group in groups],
        }

    def _group(self, group: str) -> JsonObject:
        versions = self._groups().get(group)
        if not group or versions is None:
            raise no_such_resource()
        named = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
        return {"name": group, "versions": named, "preferredVersion": named[0]}

    # --- Resources ----------------------------------------------------------------------------

    def _resources(self, group: str, version: str) -> list[ApiResource]:
        return [
            served.resource
            for served in self._served
            if (served.resource.group, served.resource.version) == (group, version)
        ]

    def _resource_list(self, group: str, version: str) -> JsonObject:
        if version not in self._groups().get(group, ()):
            raise no_such_resource()
        entries: list[JsonObject] = []
        for resource in self._resources(group, version):
            entries.append(_resource_entry(resource))
            entries += [_subresource_entry(resource, sub) for sub in subresources_of(resource)]
        entries += [
            _virtual_entry(virtual)
            for virtual in _VIRTUAL
            if (virtual.group, "v1") == (group, version)
        ]
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": entries,
        }

    def _aggregated(self, groups: Iterable[str]) -> JsonObject:
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": [
                {
                    "metadata": {"name": group} if group else {},
                    "versions": [
                        self._aggregated_version(group, version)
                        for version in self._groups()[group]
                    ],
                }
                for group in groups
            ],
        }

    def _aggregated_version(self, group: str, version: str) -> JsonObject:
        resources = [_aggregated_resource(resource) for resource in self._resources(group, version)]
        resources += [
            _aggregated_virtual(virtual)
            for virtual in _VIRTUAL
            if (virtual.group, "v1") == (group, version)
        ]
        return {"version": version, "resources": resources, "freshness": "Current"}


def accepts_aggregated(accept: str) -> bool:
    """Whether the client accepts aggregated discovery in the version served here."""
    return any(
        media_type.parameters.get("as") == "APIGroupDiscoveryList"
        and media_type.parameters.get("v") == "v2"
        for media_type in accepted(accept)
    )


def _resource_entry(resource: ApiResource) -> JsonObject:
    entry: JsonObject = {
        "name": resource.plural,
        "singularName": resource.singular or resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    }
    return entry | _names(resource)


def _names(resource: ApiResource) -> JsonObject:
    names: JsonObject = {}
    if resource.short_names:
        names["shortNames"] = resource.short_names
    if resource.categories:
        names["categories"] = resource.categories
    return names


def _subresource_entry(resource: ApiResource, sub: SubresourceInfo) -> JsonObject:
    entry: JsonObject = {
        "name": f"{resource.plural}/{sub.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": sub.kind,
        "verbs": sub.verbs,
    }
    if (sub.group, sub.version) != (resource.group, resource.version):
        entry |= {"group": sub.group, "version": sub.version}
    return entry


def _virtual_entry(virtual: Virtual) -> JsonObject:
    return {
        "name": virtual.plural,
        "singularName": virtual.kind.lower(),
        "namespaced": virtual.namespaced,
        "kind": virtual.kind,
        "verbs": ["create"],
    }


def _aggregated_resource(resource: ApiResource) -> JsonObject:
    entry: JsonObject = {
        "resource": resource.plural,
        "responseKind": _kind(resource.group, resource.version, resource.kind),
        "scope": _scope(resource.namespaced),
        "singularResource": resource.singular or resource.kind.lower(),
        "verbs": resource.verbs,
    }
    entry |= _names(resource)
    if subresources := subresources_of(resource):
        entry["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": _kind(sub.group, sub.version, sub.kind),
                "verbs": sub.verbs,
            }
            for sub in subresources
        ]
    return entry


def _aggregated_virtual(virtual: Virtual) -> JsonObject:
    return {
        "resource": virtual.plural,
        "responseKind": _kind(virtual.group, "v1", virtual.kind),
        "scope": _scope(virtual.namespaced),
        "singularResource": virtual.kind.lower(),
        "verbs": ["create"],
    }


def _kind(group: str, version: str, kind: str) -> JsonObject:
    return {"group": group, "version": version, "kind": kind}


def _scope(namespaced: bool) -> str:
    return "Namespaced" if namespaced else "Cluster"
