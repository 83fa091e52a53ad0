"""A cluster is read in pages, without its secrets."""

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from kubestow.errors import ApiError, GoneError, InputError, NotFoundError
from kubestow.simulator.input.live import (
    LiveCluster,
    read_cluster,
    read_resources,
)
from kubestow.simulator.kept_documents import without_unread_parts
from kubestow.simulator.manifests import READ_KINDS


class Forbidden(ApiError):
    code = 403


class Server:
    """Answers lists from items by plural; an error in their place is raised."""

    host = "example:6443"

    def __init__(self, page_size: int = 2, **items: Any) -> None:
        self._items = items
        self._page_size = page_size
        self.paths: list[str] = []
        # Raised instead of the answer to the request of this path and token.
        self.gone_at = ""

    async def get_document(self, path: str) -> dict[str, Any]:
        self.paths.append(path)
        url = urlsplit(path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        found = self._items.get(url.path.rpartition("/")[2], [])
        if isinstance(found, Exception):
            raise found
        if self.gone_at and query.get("continue") == self.gone_at:
            raise GoneError("the token is too old")
        start = int(query.get("continue", 0))
        end = start + self._page_size if "limit" in query else len(found)
        token = str(end) if end < len(found) else ""
        return {"metadata": {"continue": token}, "items": found[start:end]}


def named(*names: str) -> list[dict[str, Any]]:
    return [{"metadata": {"name": name, "namespace": "shop"}} for name in names]


def read(server: Server) -> LiveCluster:
    return asyncio.run(read_cluster(server))


def names(live: LiveCluster) -> list[str]:
    return [document.raw["metadata"]["name"] for document in live.documents]


def test_every_kind_that_is_read_has_a_resource() -> None:
    assert {resource.kind for resource in read_resources()} == READ_KINDS
    assert not {"Secret", "ConfigMap"} & READ_KINDS


def test_all_pages_are_read() -> None:
    server = Server(pods=named("a", "b", "c", "d", "e"), nodes=named("n"))
    live = read(server)
    assert names(live) == ["n", "a", "b", "c", "d", "e"]
    assert live.documents[1].raw["kind"] == "Pod"
    assert live.documents[1].raw["apiVersion"] == "v1"
    assert live.documents[1].source == 'pods "shop/a" of example:6443'
    assert all("limit=500" in path for path in server.paths)


def test_pages_that_took_too_long_are_read_at_once() -> None:
    server = Server(pods=named("a", "b", "c", "d", "e"))
    server.gone_at = "4"
    assert names(read(server)) == ["a", "b", "c", "d", "e"]


class ChangingServer(Server):
    """Pods are created and deleted between two pages, so each page is of another version."""

    async def get_document(self, path: str) -> dict[str, Any]:
        page = await super().get_document(path)
        if urlsplit(path).path.endswith("/pods"):
            self._items["pods"] = [*named(f"new-{len(self.paths)}"), *self._items["pods"][:-1]]
        return {**page, "metadata": {**page["metadata"], "resourceVersion": str(len(self.paths))}}


def test_pages_of_several_versions_are_not_mixed() -> None:
    """Of pages of several versions one would have a pod twice; all at once are of one version."""
    found = names(read(ChangingServer(pods=named("a", "b", "c", "d", "e"))))
    assert len(found) == len(set(found)) == 5


def test_a_list_that_is_gone_again_and_again_is_one_line() -> None:
    server = Server(pods=GoneError("The provided continue parameter is too old"), nodes=named("n"))
    with pytest.raises(InputError) as error:
        read(server)
    assert str(error.value) == (
        "cannot list pods of example:6443: The provided continue parameter is too old"
    )


def test_what_is_not_served_or_forbidden_is_named() -> None:
    live = read(
        Server(
            nodes=named("n"),
            deviceclasses=NotFoundError("no"),
            podgroups=NotFoundError("no"),
            csinodes=Forbidden("no"),
        )
    )
    assert names(live) == ["n"]
    assert live.not_served == ["deviceclasses.resource.k8s.io"]  # not the alpha groups of pods
    assert live.forbidden == ["csinodes.storage.k8s.io"]


class VersionedServer(Server):
    """Has rules in some versions of their API only."""

    def __init__(self, *versions: str) -> None:
        super().__init__(nodes=named("n1"), devicetaintrules=named("r"))
        self._versions = versions

    async def get_document(self, path: str) -> dict[str, Any]:
        *_, version, plural = urlsplit(path).path.split("/")
        if plural == "devicetaintrules" and version not in self._versions:
            raise NotFoundError("no")
        return await super().get_document(path)


@pytest.mark.parametrize("versions", [("v1",), ("v1beta2",), ("v1", "v1alpha3", "v1beta2")])
def test_device_taint_rules_are_read_once_in_any_version(versions: tuple[str, ...]) -> None:
    """A server of v1.36 has them in versions that it calls alpha and beta."""
    live = read(VersionedServer(*versions))
    rules = [each.raw for each in live.documents if each.raw["kind"] == "DeviceTaintRule"]
    assert [raw["apiVersion"] for raw in rules] == [f"resource.k8s.io/{versions[0]}"]
    assert live.not_served == []


@pytest.mark.parametrize(
    "server",
    [
        pytest.param(lambda: Server(pods=Forbidden("not allowed")), id="pods"),
        pytest.param(lambda: Server(services=ApiError("not allowed")), id="failure"),
    ],
)
def test_what_is_needed_must_be_readable(server: Callable[[], Server]) -> None:
    with pytest.raises(InputError, match=r"cannot list (pods|services) of example:6443: not allo"):
        read(server())


def test_no_environment_and_no_history_is_kept() -> None:
    containers = [{"name": "c", "env": [{"name": "PASSWORD", "value": "x"}], "envFrom": [{}]}]
    metadata = {
        "name": "a",
        "managedFields": [{}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x", "kept": "y"},
    }
    pod_spec = {"containers": containers, "initContainers": containers}
    bare = {"containers": [{"name": "c"}], "initContainers": [{"name": "c"}]}
    kept = {"name": "a", "annotations": {"kept": "y"}}
    assert without_unread_parts({"metadata": metadata, "spec": pod_spec}) == {
        "metadata": kept,
        "spec": bare,
    }
    assert without_unread_parts(
        {"metadata": metadata, "spec": {"template": {"spec": pod_spec}}}
    ) == {
        "metadata": kept,
        "spec": {"template": {"spec": bare}},
    }
