"""Objects that cannot be decoded, or only in part: one never stops the others."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from aiohttp import web

from kubestow.api.device import ResourceClaim
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.cache.objects import ObjectStore
from kubestow.cluster.http import undecodable
from kubestow.cluster.http.http_client import HttpClient
from kubestow.cluster.http.undecodable import UndecodableObjects
from kubestow.cluster.informer import Handler, Informer
from kubestow.errors import ApiError, DecodeError
from kubestow.testing.clock import ManualClock


class Counts:
    """An observer of a session that counts what could not be decoded."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def undecodable(self, kind: str) -> None:
        self.kinds.append(kind)

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


def document(name: str, version: int = 1, *, fields: bytes = b"", **parts: Any) -> JsonObject:
    metadata = {"name": name, "namespace": "prod", "resourceVersion": str(version), "uid": name}
    if fields:
        metadata["managedFields"] = [msgspec.Raw(fields)]
    return {"metadata": metadata, **parts}


def odd(name: str, version: int = 1) -> JsonObject:
    return document(name, version, spec={"priority": "high"})


def send(value: object) -> Any:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=msgspec.json.encode(value))

    return answer


def page(*items: JsonObject) -> Any:
    return send({"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": items})


END_OF_LIST = (
    "BOOKMARK",
    {
        "metadata": {
            "resourceVersion": "9",
            "annotations": {"k8s.io/initial-events-end": "true"},
        }
    },
)


def stream(*frames: tuple[str, JsonObject], held: asyncio.Event | None = None) -> Any:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for type, value in frames:
            await response.write(msgspec.json.encode({"type": type, "object": value}) + b"\n")
        if held is not None:
            await held.wait()
        return response

    return answer


def names(items: Any) -> list[str]:
    return [item.metadata.name for item in items]


def test_a_page_that_fails_as_a_whole_is_read_object_by_object(
    serve: Any, connect: Any, deep_fields: bytes, caplog: pytest.LogCaptureFixture
):
    answer = page(document("a"), odd("b"), document("deep", fields=deep_fields), document("c"))

    async def main() -> None:
        async with serve(answer) as server:
            counts = Counts()
            client: HttpClient = connect(server.url, observer=counts)
            for _ in range(2):
                assert names(await client.list(Pod)) == ["a", "deep", "c"]
            assert counts.kinds == ["Pod", "Pod"]
            client.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    (record,) = caplog.records
    assert 'cannot decode Pod "prod/b": spec.priority is "high"' in record.getMessage()


def test_single_answers_may_be_nested_deeply(serve: Any, connect: Any, deep_fields: bytes):
    async def main() -> None:
        async with serve(
            send(document("deep", fields=deep_fields, spec={"nodeName": "n"}))
        ) as server:
            client: HttpClient = connect(server.url)
            assert (await client.get(Pod, "prod", "deep")).spec.node_name == "n"
            assert (await client.get_document("/api"))["metadata"]["name"] == "deep"
            client.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    "body", [pytest.param(b"<html>", id="not-json"), pytest.param(b"[1]", id="no-object")]
)
def test_an_answer_that_is_no_document_is_an_error(serve: Any, connect: Any, body: bytes):
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=body)

    async def main() -> None:
        async with serve(answer) as server:
            client: HttpClient = connect(server.url)
            for request in (client.get_document("/api"), client.create_document("/api", {})):
                with pytest.raises(ApiError, match="the answer of the server is"):
                    await request
            client.close()

    asyncio.run(main())


def test_a_claim_with_deep_parameters_is_listed_and_watched(serve: Any, connect: Any):
    deep = b'{"a":' * 1_100 + b"1" + b"}" * 1_100
    opaque = {"driver": "d", "parameters": msgspec.Raw(deep)}
    claim = document("c", spec={"devices": {"config": [{"opaque": opaque}]}})

    async def main() -> None:
        async with serve(page(claim), stream(("ADDED", claim), END_OF_LIST)) as server:
            client: HttpClient = connect(server.url)
            (listed,) = await client.list(ResourceClaim)
            (streamed,) = (await client.list_and_watch(ResourceClaim)).items
            for found in (listed, streamed):
                parameters = found.spec.devices.config[0].opaque.parameters
                assert parameters.text == deep
            client.close()

    asyncio.run(main())


class Followed:
    """An informer of pods over HTTP, and what its handlers were called for."""

    def __init__(self, client: HttpClient) -> None:
        self.calls: list[tuple[str, str]] = []
        self.store = ObjectStore[Pod]()
        self.informer = Informer(
            client, Pod, self.store, ManualClock(), rng=np.random.default_rng(0), sleep=_no_delay
        )
        self.informer.add_handler(
            Handler(
                lambda pod: self.calls.append(("add", pod.metadata.name)),
                lambda _, pod: self.calls.append(("update", pod.metadata.name)),
                lambda pod, unknown: self.calls.append((f"delete {unknown}", pod.metadata.name)),
            )
        )


async def _no_delay(_: float) -> None:
    await asyncio.sleep(0)


def follow(serve: Any, connect: Any, answers: Callable[[asyncio.Event], list[Any]]) -> Followed:
    """Follow pods until the store has one that is called "last"."""

    async def main() -> Followed:
        held = asyncio.Event()
        async with serve(*answers(held)) as server:
            client: HttpClient = connect(server.url)
            followed = Followed(client)
            task = asyncio.create_task(followed.informer.run())
            async with asyncio.timeout(300):
                while followed.store.get("prod", "last") is None:
                    assert not task.done()
                    await asyncio.sleep(0)
            held.set()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            client.close()
            return followed

    return asyncio.run(main())


def test_a_pod_that_cannot_be_decoded_does_not_make_the_informer_list_again(
    serve: Any, connect: Any, deep_fields: bytes
):
    def answers(held: asyncio.Event) -> list[Any]:
        first = [("ADDED", document("a")), ("ADDED", odd("b")), END_OF_LIST]
        later = [
            ("ADDED", odd("c", 10)),
            ("MODIFIED", odd("a", 11)),
            ("MODIFIED", document("b", 12)),
            ("ADDED", document("deep", 13, fields=deep_fields)),
            ("DELETED", odd("a", 14)),
            ("DELETED", odd("c", 15)),
            ("ADDED", document("last", 16)),
        ]
        return [stream(*first, *later, held=held)]

    followed = follow(serve, connect, answers)
    assert followed.calls == [
        ("add", "a"),
        ("add", "b"),
        ("add", "deep"),
        ("delete True", "a"),
        ("add", "last"),
    ]
    statistics = followed.informer.statistics()
    assert statistics.list_count == 1
    assert statistics.resource_version == "16"


@pytest.mark.parametrize("is_streamed", [True, False])
def test_the_last_known_state_of_a_pod_stays_when_it_is_listed_in_another(
    serve: Any, connect: Any, is_streamed: bool
):
    gone: JsonObject = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    second = [odd("a", 10), document("last", 11)]

    def answers(held: asyncio.Event) -> list[Any]:
        first = stream(
            ("ADDED", document("a")), ("ADDED", document("b")), END_OF_LIST, ("ERROR", gone)
        )
        if is_streamed:
            return [first, stream(*(("ADDED", pod) for pod in second), END_OF_LIST, held=held)]
        refused = send({"kind": "Status"})
        return [first, _refuse, page(*second), stream(held=held), refused]

    followed = follow(serve, connect, answers)
    assert followed.calls == [("add", "a"), ("add", "b"), ("delete True", "b"), ("add", "last")]
    known = followed.store.get("prod", "a")
    assert known is not None
    assert known.metadata.resource_version == "1"


async def _refuse(_: web.Request) -> web.Response:
    status = {"kind": "Status", "code": 422, "reason": "Invalid", "message": "no streams"}
    return web.json_response(status, status=422)


def test_reasons_are_kept_for_a_number_of_objects(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(undecodable, "LOGGED_MAX", 2)
    objects = UndecodableObjects()
    for name in ("a", "b", "a", "c", "b", "a"):
        objects.skip(Pod, msgspec.json.encode(odd(name)), DecodeError("odd"))
    logged = [record.getMessage() for record in caplog.records]
    assert [line.split('"')[1] for line in logged] == [
        "prod/a",
        "prod/b",
        "prod/c",
        "prod/b",
        "prod/a",
    ]
