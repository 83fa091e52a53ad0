"""Which resources are served, under which names, and how they are stored.

Nearly every resource is served as it is stored. Events are the exception: they are stored as
`events.k8s.io/v1` and also served as `v1`, where kubectl looks for them.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http import core_events
from kubestow.apiserver.refusals import no_such_resource
from kubestow.cluster.resources import EVENTS, ApiResource, ResourceTable

_CORE_EVENTS: Final = ApiResource(
    group="", version="v1", plural="events", kind="Event", namespaced=True, short_names=("ev",)
)


def _same(document: JsonObject) -> JsonObject:
    return document


def _same_text(text: str) -> str:
    return text


class ServedResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource as clients see it, and the stored one."""

    resource: ApiResource
    stored: ApiResource
    to_client: Callable[[JsonObject], JsonObject] = _same
    to_store: Callable[[JsonObject], JsonObject] = _same
    # Field selectors name fields as the client sees them.
    stored_fields: Callable[[str], str] = _same_text

    @property
    def is_as_stored(self) -> bool:
        return self.resource is self.stored

    @property
    def list_kind(self) -> str:
        return f"{self.resource.kind}List"


class ServedTable:
    """The served resources, by group, version and plural."""

    def __init__(self, resources: ResourceTable) -> None:
        self._resources = resources
        self._by_name: dict[tuple[str, str, str], ServedResource] = {}
        self._core_events = ServedResource(
            resource=_CORE_EVENTS,
            stored=EVENTS,
            to_client=core_events.to_core,
            to_store=core_events.from_core,
            stored_fields=core_events.stored_fields,
        )

    def find(self, group: str, version: str, plural: str) -> ServedResource:
        """The resource; NotFoundError if it is not served."""
        found = self._by_name.get((group, version, plural))
        if found is None:
            # Resources may have been registered since.
            self._by_name = {
                (served.resource.group, served.resource.version, served.resource.plural): served
                for served in self
            }
            found = self._by_name.get((group, version, plural))
        if found is None:
            raise no_such_resource()
        return found

    def __iter__(self) -> Iterator[ServedResource]:
        for resource in self._resources:
            yield ServedResource(resource=resource, stored=resource)
            if resource is EVENTS:
                yield self._core_events
