"""Pages of a list: one bad object does not cost the others."""

import asyncio
from typing import Any

import pytest

from kubestow.api.nested_spans import NestedSpans
from kubestow.api.pod import Pod
from kubestow.cluster.http.pages import ListPage, decode_page
from kubestow.cluster.http.undecodable import UndecodableObjects
from kubestow.errors import ApiError

LEVELS = 9_990


def _pod(name: str, fields: bytes = b"{}", node: bytes = b'"n"') -> bytes:
    managed = b'[{"manager":"[{\\"","fieldsV1":%s}]' % fields
    metadata = b'{"name":"%s","namespace":"d","managedFields":%s}' % (
        name.encode("latin-1"),
        managed,
    )
    return b'{"metadata":%s,"spec":{"nodeName":%s}}' % (metadata, node)


def _deep(name: str, node: bytes = b'"n"') -> bytes:
    return _pod(name, b'{"f:a":' * LEVELS + b"{}" + b"}" * LEVELS, node)


def _page(*items: bytes) -> bytes:
    metadata = b'{"resourceVersion":"7","continue":"more","x":[{}]}'
    return b'{"kind":"PodList","metadata":%s,"items":[%s]}' % (metadata, b", ".join(items))


def _decoded(raw: bytes) -> ListPage[Pod]:
    return asyncio.run(decode_page(Pod, raw, UndecodableObjects()))


def _names(pods: Any) -> list[str]:
    return [pod.metadata.name for pod in pods]


def test_deep_objects_are_decoded_beside_others() -> None:
    page = _decoded(_page(_pod("a"), _deep("b"), _pod("c")))
    assert _names(page.items) == ["a", "b", "c"]
    assert [pod.spec.node_name for pod in page.items] == ["n", "n", "n"]
    assert (page.metadata.resource_version, page.metadata.continue_token) == ("7", "more")


def test_objects_that_are_not_valid_are_skipped_by_name() -> None:
    raw = _page(_pod("a", node=b"7"), _pod("b\xff"), _deep("c", node=b"[]"), _pod("d"))
    page = _decoded(raw)
    assert _names(page.items) == ["b\ufffd", "d"]
    assert [meta.name for meta in page.skipped] == ["a", "c"]


@pytest.mark.parametrize("items", [b"null", b"[]"])
def test_a_page_may_be_empty(items: bytes) -> None:
    # Without the deep field it would be decoded as a whole.
    deep = b"[" * LEVELS + b"]" * LEVELS
    raw = b'{"metadata":{"resourceVersion":"7"},"items":%s,"other":%s}' % (items, deep)
    assert not _decoded(raw).items


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b'{"metadata":{},"items":[%s' % _deep("a"), id="cut"),
        pytest.param(b'{"metadata":{},"items":{"a":%s}}' % _deep("a"), id="no-list"),
        pytest.param(b"[" * LEVELS, id="brackets"),
        pytest.param(b"", id="empty"),
    ],
)
def test_what_is_no_list_is_refused(raw: bytes) -> None:
    with pytest.raises(ApiError, match="the list of Pod is"):
        _decoded(raw)


def test_an_ordinary_object_is_scanned_once_and_the_loop_has_its_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = _page(*(_pod(f"p{number}") for number in range(600)), _deep("deep"))
    monkeypatch.setattr("kubestow.api.nested_spans.PIECE_BYTES", 1 << 14)
    read: list[int] = []
    read_piece = NestedSpans.read_piece

    def counted(spans: NestedSpans, text: bytes) -> None:
        before = spans.read
        read_piece(spans, text)
        read.append(spans.read - before)

    monkeypatch.setattr(NestedSpans, "read_piece", counted)
    turns = 0

    async def main() -> int:
        nonlocal turns
        decoding = asyncio.create_task(decode_page(Pod, raw, UndecodableObjects()))
        while not decoding.done():
            await asyncio.sleep(0)
            turns += 1
        return len((await decoding).items)

    assert asyncio.run(main()) == 601
    assert turns >= len(raw) // (1 << 14)
    # The whole page, and the object that is nested deeply once more.
    assert sum(read) <= len(raw) + 2 * len(_deep("deep"))
