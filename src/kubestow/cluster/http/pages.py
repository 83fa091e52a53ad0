"""One page of a list: decoded as a whole, or object by object where that fails.

Not here: fetching the pages (`http_client`).
"""

import asyncio
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, Generic, TypeVar

import msgspec

from kubestow.api.decode import UNREADABLE, dec_hook, decode_json
from kubestow.api.deep_json import DeepJson, as_utf8
from kubestow.api.meta import ApiObject, ObjectMeta
from kubestow.api.nested_spans import NestedSpans
from kubestow.cluster.http.undecodable import UndecodableObjects
from kubestow.errors import ApiError, DecodeError

T = TypeVar("T", bound=ApiObject)


class PageMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_token: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct, Generic[T]):
    metadata: PageMetadata
    items: Sequence[T]
    skipped: Sequence[ObjectMeta] = ()  # objects that cannot be decoded


class _TypedPage(msgspec.Struct, Generic[T]):
    metadata: PageMetadata
    items: list[T] | None = None


class _RawPage(msgspec.Struct):
    metadata: PageMetadata
    items: list[msgspec.Raw] | None = None


_RAW_DECODER: Final = msgspec.json.Decoder(_RawPage)
# The list, its items, an item.
_ITEM_LEVEL: Final = 3
_OBJECTS_PER_TURN: Final = 256


async def decode_page(cls: type[T], raw: bytes, undecodable: UndecodableObjects) -> ListPage[T]:
    """The objects of a page; ApiError if it is not a list at all.

    While objects are decoded one by one, the loop has its turns every few milliseconds.
    """
    try:
        page = _decoder(cls).decode(raw)
        return ListPage(page.metadata, page.items or ())
    except UNREADABLE:
        return await _decode_one_by_one(cls, raw, undecodable)


async def _decode_one_by_one(
    cls: type[T], raw: bytes, undecodable: UndecodableObjects
) -> ListPage[T]:
    """One object that is nested too deeply, or not valid, must not cost the others."""
    spans = NestedSpans(_ITEM_LEVEL)
    while spans.read < len(raw):
        spans.read_piece(raw)
        await asyncio.sleep(0)
    outline = DeepJson(raw, spans=spans)
    try:
        page = _RAW_DECODER.decode(as_utf8(outline.text))
    except msgspec.ValidationError as error:
        raise ApiError(f"the list of {cls.__name__} is no list: {error}") from error
    except UNREADABLE as error:
        raise ApiError(f"the list of {cls.__name__} is not JSON: {error}") from error
    items: list[T] = []
    skipped: list[ObjectMeta] = []
    for number, mark in enumerate(page.items or ()):
        if number % _OBJECTS_PER_TURN == 0:
            await asyncio.sleep(0)
        item = outline.restored(bytes(mark))
        try:
            items.append(decode_json(cls, item))
        except DecodeError as error:
            skipped.append(undecodable.skip(cls, DeepJson(as_utf8(item)).text, error))
    return ListPage(page.metadata, items, skipped)


@cache  # one for each kind: expensive to build, cheap to use
def _decoder(cls: type[Any]) -> msgspec.json.Decoder[_TypedPage[Any]]:
    return msgspec.json.Decoder(_TypedPage[cls], dec_hook=dec_hook)
