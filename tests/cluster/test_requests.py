"""A client is one method: all others make a value of their request and send it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kubestow.api.coordination import Event
from kubestow.api.meta import ObjectMeta
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.requests import Request
from kubestow.testing.builders import make_pod

POD = make_pod("p", namespace="ns")
EVENT = Event(metadata=ObjectMeta(name="e", namespace="ns"))
ANSWER = object()

Call = Callable[[ClusterClient], Coroutine[Any, Any, Any]]
# Method → a call of it, the kind and the key of its request, whether it writes.
CALLS: dict[str, tuple[Call, type, tuple[str, str], bool]] = {
    "is_served": (lambda client: client.is_served(Node), Node, ("", ""), False),
    "get": (lambda client: client.get(Pod, "ns", "p"), Pod, ("ns", "p"), False),
    "list": (lambda client: client.list(Pod, namespace="ns"), Pod, ("", ""), False),
    "list_and_watch": (lambda client: client.list_and_watch(Pod), Pod, ("", ""), False),
    "watch": (lambda client: client.watch(Pod, resource_version="1"), Pod, ("", ""), False),
    "create": (lambda client: client.create(POD), Pod, ("ns", "p"), True),
    "update": (lambda client: client.update(POD, POD), Pod, ("ns", "p"), True),
    "patch": (lambda client: client.patch(Pod, "ns", "p", {}), Pod, ("ns", "p"), True),
    "delete": (lambda client: client.delete(Pod, "ns", "p"), Pod, ("ns", "p"), True),
    "bind": (lambda client: client.bind(POD, "n"), Pod, ("ns", "p"), True),
    "patch_pod_status": (lambda client: client.patch_pod_status(POD), Pod, ("ns", "p"), True),
    "delete_pod": (lambda client: client.delete_pod(POD), Pod, ("ns", "p"), True),
    "create_event": (lambda client: client.create_event(EVENT), Event, ("ns", "e"), True),
}


class Sent(ClusterClient):
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Any:
        self.requests.append(request)
        return ANSWER


def test_every_method_is_here() -> None:
    methods = {name for name in vars(ClusterClient) if not name.startswith("_")}
    assert methods - {"send", "host"} == CALLS.keys()


@pytest.mark.parametrize("name", CALLS)
def test_a_method_sends_one_request_that_says_what_it_is_about(name: str) -> None:
    call, kind, key, is_write = CALLS[name]
    client = Sent()
    answer = asyncio.run(call(client))
    (request,) = client.requests
    assert (request.verb, request.kind, request.key) == (name, kind, key)
    assert request.is_write is is_write
    # What is not decoded returns nothing.
    assert answer is (ANSWER if request.is_decoded else None)
