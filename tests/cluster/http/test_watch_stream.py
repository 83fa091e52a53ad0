"""The frames of a watch, fed by hand."""

import asyncio
import logging
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.cluster.client import ObjectWatch
from kubestow.cluster.http import watch_stream
from kubestow.cluster.http.watch_stream import PENDING_BYTES_MAX, WatchStream
from kubestow.errors import ApiError, GoneError, UnreachableError


def frame(type: str, name: str = "a", version: int = 1, **parts: Any) -> bytes:
    document: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "resourceVersion": str(version)},
        **parts,
    }
    return msgspec.json.encode({"type": type, "object": document}) + b"\n"


def error_frame(code: int, reason: str, message: str) -> bytes:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    return msgspec.json.encode({"type": "ERROR", "object": status}) + b"\n"


def seen(stream: WatchStream[Pod]) -> list[tuple[str, str, str]]:
    return [
        (event.type, event.object.metadata.name, event.resource_version)
        for event in stream.events_nowait()
    ]


def test_it_is_a_watch():
    watch: ObjectWatch[Pod] = WatchStream(Pod)  # assigning is the test
    assert not watch.is_closed


def test_frames_become_typed_events():
    stream = WatchStream(Pod)
    stream.feed(frame("ADDED", spec={"nodeName": "n1"}) + frame("MODIFIED", version=2))
    stream.feed(frame("DELETED", version=3))
    first, second, third = stream.events_nowait()
    assert isinstance(first.object, Pod)
    assert first.object.spec.node_name == "n1"
    assert [event.type for event in (first, second, third)] == ["ADDED", "MODIFIED", "DELETED"]
    assert third.resource_version == "3"
    assert stream.events_nowait() == []


@given(st.data())
def test_however_the_bytes_are_cut_the_events_are_the_same(data: st.DataObject):
    text = b"".join(frame("ADDED", f"pod-{index}", index) for index in range(4))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(text) - 1), max_size=8)))
    reads = data.draw(st.lists(st.booleans(), min_size=len(cuts) + 1, max_size=len(cuts) + 1))
    stream = WatchStream(Pod)
    found: list[tuple[str, str, str]] = []
    pieces = zip([0, *cuts], [*cuts, len(text)], reads, strict=True)
    for start, end, is_read in pieces:
        stream.feed(text[start:end])
        if is_read:
            found += seen(stream)
    found += seen(stream)
    assert found == [("ADDED", f"pod-{index}", str(index)) for index in range(4)]


def test_nulls_are_read_as_absent():
    stream = WatchStream(Pod)
    bookmark = frame("BOOKMARK", "", 9, spec={"containers": None}, status={})
    stream.feed(frame("ADDED") + bookmark + frame("ADDED", "b", 10))
    assert seen(stream) == [("ADDED", "a", "1"), ("BOOKMARK", "", "9"), ("ADDED", "b", "10")]


def test_the_reader_waits_for_a_whole_frame():
    async def main() -> None:
        stream = WatchStream(Pod)
        task = asyncio.create_task(stream.next_batch())
        text = frame("ADDED")
        stream.feed(text[:20])
        await asyncio.sleep(0)
        assert not task.done()
        stream.feed(text[20:])
        (event,) = await task
        assert event.object.metadata.name == "a"

    asyncio.run(main())


@pytest.mark.parametrize("error", [None, UnreachableError("reset")])
def test_after_the_end_the_rest_is_read_and_half_a_frame_is_lost(error: UnreachableError | None):
    async def main() -> None:
        stream = WatchStream(Pod)
        stream.feed(frame("ADDED") + frame("ADDED", "b")[:30])
        stream.end(error)
        assert stream.is_closed
        assert [event.object.metadata.name for event in await stream.next_batch()] == ["a"]
        assert await stream.next_batch() == []

    asyncio.run(main())


def test_an_error_comes_after_what_arrived_before_it():
    async def main() -> None:
        stream = WatchStream(Pod)
        gone = error_frame(410, "Expired", "too old resource version: 1 (2)")
        stream.feed(frame("ADDED") + gone + frame("ADDED", "b"))
        assert [event.object.metadata.name for event in await stream.next_batch()] == ["a"]
        with pytest.raises(GoneError, match="too old resource version: 1"):
            await stream.next_batch()
        assert await stream.next_batch() == []
        assert stream.is_closed

    asyncio.run(main())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param(b"<html>\n", "cannot read the frame", id="no-json"),
        pytest.param(b'{"type": "ADDED"}\n', "cannot read the frame", id="no-object"),
        pytest.param(b"\xff\n", "cannot read the frame", id="no-text"),
        pytest.param(frame("REPLACED"), 'unknown event "REPLACED"', id="unknown-type"),
        pytest.param(
            b'{"type": "ERROR", "object": []}\n', "an error without a Status object", id="odd-error"
        ),
        pytest.param(
            b'{"type": "ERROR", "object": {"message": "\xff"}}\n', "^\ufffd$", id="error-not-utf-8"
        ),
        pytest.param(
            frame("DELETED", "", spec="x"),
            'cannot decode Pod: spec is "x".*a new list is needed',
            id="odd-deletion-without-a-name",
        ),
    ],
)
def test_what_cannot_be_read_ends_the_watch(line: bytes, message: str):
    async def main() -> None:
        stream = WatchStream(Pod)
        stream.feed(frame("ADDED") + line)
        assert len(await stream.next_batch()) == 1
        with pytest.raises(ApiError, match=message):
            await stream.next_batch()

    asyncio.run(main())


def test_an_invalid_object_is_named_once_and_skipped(caplog: pytest.LogCaptureFixture):
    stream = WatchStream(Pod)
    odd = frame("MODIFIED", "odd", 7, spec={"priority": "high"})
    stream.feed(frame("ADDED") + odd + b"\n" + frame("ADDED", "b", 8))
    stream.feed(frame("MODIFIED", "odd", 9, spec={"priority": "high"}))
    stream.feed(frame("MODIFIED", "odd", 10, spec={"priority": 3}))
    with caplog.at_level(logging.ERROR):
        assert seen(stream) == [
            ("ADDED", "a", "1"),
            ("UNDECODED", "odd", "7"),
            ("ADDED", "b", "8"),
            ("UNDECODED", "odd", "9"),
            ("MODIFIED", "odd", "10"),
        ]
    (record,) = caplog.records
    assert 'cannot decode Pod "default/odd": spec.priority is "high"' in record.getMessage()
    assert 'Pod "default/odd" is skipped until it changes' in record.getMessage()


def test_the_deletion_of_an_invalid_object_has_its_name():
    stream = WatchStream(Pod)
    stream.feed(frame("DELETED", "odd", 7, spec="x") + frame("ADDED", "b", 8))
    assert seen(stream) == [("VANISHED", "odd", "7"), ("ADDED", "b", "8")]
    assert not stream.is_closed


def test_an_invalid_object_without_a_name_does_not_end_the_watch():
    stream = WatchStream(Pod)
    stream.feed(b'{"type": "ADDED", "object": {"metadata": 5}}\n' + frame("ADDED", "b", 8))
    assert seen(stream) == [("ADDED", "b", "8")]
    assert not stream.is_closed


def test_an_object_nested_as_deeply_as_a_server_stores_is_read(deep_fields: bytes):
    text = frame("ADDED", "deep", 7, spec={"nodeName": "n1"})
    text = text.replace(b'"name":', b'"managedFields":[%s],"name":' % deep_fields)
    stream = WatchStream(Pod)
    stream.feed(frame("ADDED") + text + frame("ADDED", "b", 8))
    first, second, third = stream.events_nowait()
    assert [event.object.metadata.name for event in (first, second, third)] == ["a", "deep", "b"]
    assert second.object.spec.node_name == "n1"


def test_a_deep_object_that_is_invalid_is_skipped(deep_fields: bytes):
    text = frame("ADDED", "deep", 7, spec={"priority": "high"})
    stream = WatchStream(Pod)
    stream.feed(text.replace(b'"name":', b'"managedFields":[%s],"name":' % deep_fields))
    stream.feed(frame("ADDED", "b", 8))
    assert seen(stream) == [("UNDECODED", "deep", "7"), ("ADDED", "b", "8")]


def test_a_line_without_an_end_ends_the_watch(monkeypatch: pytest.MonkeyPatch):
    async def main() -> None:
        monkeypatch.setattr(watch_stream, "LINE_BYTES_MAX", 1000)
        stream = WatchStream(Pod)
        stream.feed(frame("ADDED") + b"x" * 600)
        assert not stream.is_closed
        assert len(await stream.next_batch()) == 1
        stream.feed(b"x" * 600)
        with pytest.raises(ApiError, match="a line has no end within 1000 bytes"):
            await stream.next_batch()
        assert stream.is_closed

    asyncio.run(main())


class FakeConnection:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def pause(self) -> None:
        self.calls.append("pause")

    def resume(self) -> None:
        self.calls.append("resume")


def test_a_server_faster_than_the_reader_has_to_wait():
    async def main() -> None:
        connection: Any = FakeConnection()
        stream = WatchStream(Pod)
        stream.attach(connection, lambda _: None, time_limit_s=60)
        big = frame("ADDED", metadata={"annotations": {"x": "y" * PENDING_BYTES_MAX}})
        # One frame alone is never too much: it could not be read before it is whole.
        stream.feed(big[:-1])
        assert connection.calls == []
        stream.feed(big[-1:])
        stream.feed(big)
        assert connection.calls == ["pause"]
        assert len(stream.events_nowait()) == 2
        assert connection.calls == ["pause", "resume"]
        stream.close()

    asyncio.run(main())


def test_closing_gives_the_connection_back_once():
    async def main() -> None:
        released: list[Any] = []
        connection: Any = FakeConnection()
        stream = WatchStream(Pod)
        stream.attach(connection, released.append, time_limit_s=60)
        waiting = asyncio.create_task(stream.next_batch())
        await asyncio.sleep(0)
        stream.close()
        stream.close()
        assert await waiting == []
        assert released == [connection]

    asyncio.run(main())


def test_a_stream_that_ended_before_it_was_attached_gives_the_connection_back():
    async def main() -> None:
        released: list[Any] = []
        connection: Any = FakeConnection()
        stream = WatchStream(Pod)
        stream.end(None)
        stream.attach(connection, released.append, time_limit_s=60)
        assert released == [connection]

    asyncio.run(main())


def test_a_stream_beyond_its_time_limit_is_closed():
    async def main() -> None:
        stream = WatchStream(Pod)
        connection: Any = FakeConnection()
        stream.attach(connection, lambda _: None, time_limit_s=0)
        assert await stream.next_batch() == []
        assert stream.is_closed

    asyncio.run(main())
