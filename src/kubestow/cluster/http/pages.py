"""One page of a list: decoded as a whole, or object by object where that fails.

Not here: fetching the pages (`http_client`).
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final, Generic, TypeVar

import msgspec

from kubestow.api.decode import UNREADABLE, dec_hook, decode_json
from kubestow.api.deep_json import DeepJson, as_utf8
from kubestow.api.meta import ApiObject, ObjectMeta
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


def decode_page(cls: type[T], raw: bytes, undecodable: UndecodableObjects) -> ListPage[T]:
    """The objects of a page; ApiError if it is not a list at all."""
    try:
        page = _decoder(cls).decode(raw)
        return ListPage(page.metadata, page.items or ())
    except UNREADABLE:
        return _decode_one_by_one(cls, raw, undecodable)


def _decode_one_by_one(cls: type[T], raw: bytes, undecodable: UndecodableObjects) -> ListPage[T]:
    text = DeepJson(as_utf8(raw))
    try:
        page = _RAW_DECODER.decode(text.text)
    except msgspec.ValidationError as error:
        raise ApiError(f"the list of {cls.__name__} is no list: {error}") from error
    except UNREADABLE as error:
        raise ApiError(f"the list of {cls.__name__} is not JSON: {error}") from error
    items: list[T] = []
    skipped: list[ObjectMeta] = []
    for item in page.items or ():
        shortened = bytes(item)
        try:
            items.append(decode_json(cls, text.restored(shortened)))
        except DecodeError as error:
            skipped.append(undecodable.skip(cls, shortened, error))
    return ListPage(page.metadata, items, skipped)


@cache  # one for each kind: expensive to build, cheap to use
def _decoder(cls: type[Any]) -> msgspec.json.Decoder[_TypedPage[Any]]:
    return msgspec.json.Decoder(_TypedPage[cls], dec_hook=dec_hook)
