"""Which resources are served, under which names and versions, and how they are stored.

Nearly every resource is served as it is stored. Some are served in further versions and translated:
events, autoscalers, and custom resources that have several.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.apiserver.refusals import bad_request, no_such_resource
from kubestow.apiserver.schema.builtin import schema_of
from kubestow.apiserver.schema.reading import ReadDocument, TypeMismatchError, read
from kubestow.apiserver.schema.types import Schema
from kubestow.apiserver.versions import autoscaling_v1, core_events
from kubestow.cluster.resources import AUTOSCALERS, EVENTS, ApiResource, ResourceTable
from kubestow.errors import ApiError, NotFoundError


def _same(document: JsonObject) -> JsonObject:
    return document


def _same_text(text: str) -> str:
    return text


class PrinterColumn(msgspec.Struct, frozen=True):
    """A column that the definition of a custom resource adds to its table."""

    name: str
    type: str
    json_path: str
    priority: int = 0


class ScalePaths(msgspec.Struct, frozen=True, kw_only=True):
    """Where the subresource `scale` finds its numbers; an empty path is none."""

    spec: tuple[str, ...] = ("spec", "replicas")
    status: tuple[str, ...] = ("status", "replicas")
    # Of a text. Built-in kinds have a selector as an object, in their spec.
    selector: tuple[str, ...] = ()


class ServedResource(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A resource as clients see it, and the stored one."""

    resource: ApiResource
    stored: ApiResource
    to_client: Callable[[JsonObject], JsonObject] = _same
    to_store: Callable[[JsonObject], JsonObject] = _same
    # Field selectors name fields as the client sees them.
    stored_fields: Callable[[str], str] = _same_text
    # Of a custom resource: fills in defaults and validates, its fields, its columns.
    admit: Callable[[JsonObject], JsonObject] = _same
    custom_schema: Schema | None = None
    columns: tuple[PrinterColumn, ...] = ()
    scale: ScalePaths = ScalePaths()

    @property
    def is_as_stored(self) -> bool:
        return self.resource is self.stored

    @property
    def list_kind(self) -> str:
        return self.resource.list_kind or f"{self.resource.kind}List"

    @property
    def schema(self) -> Schema:
        """The fields as clients see them."""
        return self.custom_schema or _schema_of(self.resource)

    @property
    def stored_schema(self) -> Schema:
        return self.custom_schema or _schema_of(self.stored)

    def read(self, document: JsonObject) -> ReadDocument:
        """A whole object that was sent, with its own fields only; 400 for a wrong type."""
        try:
            return read(document, self.schema)
        except TypeMismatchError as error:
            raise self.unreadable(document, str(error)) from error

    def unreadable(self, document: JsonObject, problem: str) -> ApiError:
        resource = self.resource
        kind = document.get("kind") or resource.kind
        return bad_request(
            f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}:'
            f" {problem}"
        )


def _schema_of(resource: ApiResource) -> Schema:
    return schema_of(resource.group, resource.version, resource.kind)


_FURTHER: Final = {
    EVENTS.qualified_name: ServedResource(
        resource=msgspec.structs.replace(EVENTS, group=""),
        stored=EVENTS,
        to_client=core_events.to_core,
        to_store=core_events.from_core,
        stored_fields=core_events.stored_fields,
    ),
    AUTOSCALERS.qualified_name: ServedResource(
        resource=msgspec.structs.replace(AUTOSCALERS, version="v1"),
        stored=AUTOSCALERS,
        to_client=autoscaling_v1.to_v1,
        to_store=autoscaling_v1.from_v1,
    ),
}


class ServedTable:
    """The served resources, by group, version and plural."""

    def __init__(self, resources: ResourceTable) -> None:
        self._resources = resources
        self._by_name: dict[tuple[str, str, str], ServedResource] = {}
        self._by_kind: dict[tuple[str, str], ServedResource] = {}
        # The served versions of each custom resource, by its qualified name.
        self._custom: dict[str, tuple[ServedResource, ...]] = {}

    def find(self, group: str, version: str, plural: str) -> ServedResource:
        """The resource; NotFoundError if it is not served."""
        key = (group, version, plural)
        if key not in self._by_name:
            self._index()  # resources may have been registered since
        found = self._by_name.get(key)
        if found is None:
            raise no_such_resource()
        return found

    def of_kind(self, api_version: str, kind: str) -> ServedResource:
        """The resource of a document's `apiVersion` and `kind`."""
        key = (api_version, kind)
        if key not in self._by_kind:
            self._index()
        found = self._by_kind.get(key)
        if found is None:
            raise NotFoundError(f'no matches for kind "{kind}" in version "{api_version}"')
        return found

    def _index(self) -> None:
        served_resources = [(served.resource, served) for served in self]
        self._by_name = {
            (resource.group, resource.version, resource.plural): served
            for resource, served in served_resources
        }
        self._by_kind = {
            (resource.api_version, resource.kind): served for resource, served in served_resources
        }

    def is_built_in(self, qualified_name: str) -> bool:
        names = {resource.qualified_name for resource in self._resources}
        return qualified_name in names - self._custom.keys()

    def register(self, stored: ApiResource, versions: tuple[ServedResource, ...]) -> None:
        """Serve a custom resource in these versions."""
        self._resources.register(stored)
        self._custom[stored.qualified_name] = versions
        self._index()

    def unregister(self, qualified_name: str) -> None:
        """Serve a custom resource no longer."""
        if self._custom.pop(qualified_name, None) is not None:
            self._resources.unregister(qualified_name)
            self._index()

    def __iter__(self) -> Iterator[ServedResource]:
        for resource in self._resources:
            name = resource.qualified_name
            if name in self._custom:
                yield from self._custom[name]
                continue
            yield ServedResource(resource=resource, stored=resource)
            if name in _FURTHER:
                yield _FURTHER[name]
