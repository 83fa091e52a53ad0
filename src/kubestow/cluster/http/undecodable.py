"""Objects of the server that cannot be decoded: skipped, counted, and named in the log once.

One bad object must not stop the scheduling of all others, nor fill the log: it is tried again each
time the server sends it, and logged again only with another reason. What was known of it before
stays in the store until it is deleted.

Not here: finding them (`watch_stream` in watches, `pages` in lists).
"""

import logging
from collections import OrderedDict
from typing import Final, Protocol

import msgspec

from kubestow.api.decode import UNREADABLE
from kubestow.api.meta import ApiObject, ObjectMeta, object_ref
from kubestow.errors import DecodeError

logger = logging.getLogger(__name__)

LOGGED_MAX: Final = 1024


class UndecodableObserver(Protocol):
    def undecodable(self, kind: str) -> None:
        """An object of this kind could not be decoded."""
        ...


class UndecodableObjects:
    """The objects that one client could not decode."""

    def __init__(self, observer: UndecodableObserver | None = None) -> None:
        self._observer = observer
        self._logged: OrderedDict[tuple[str, str], str] = OrderedDict()  # reasons by object

    def skip(self, cls: type[ApiObject], raw: bytes, error: DecodeError) -> ObjectMeta:
        """Count and log one; returns its namespace, name and version, empty if unreadable."""
        if self._observer is not None:
            self._observer.undecodable(cls.__name__)
        metadata = _names_in(raw)
        key, reason = (cls.__name__, object_ref(metadata)), str(error)
        if self._logged.get(key) != reason:
            logger.error(
                '%s; %s "%s" is skipped until it changes', error, cls.__name__, object_ref(metadata)
            )
        self._logged[key] = reason
        self._logged.move_to_end(key)
        if len(self._logged) > LOGGED_MAX:
            self._logged.popitem(last=False)
        return metadata


class _Names(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Named(msgspec.Struct):
    metadata: _Names = msgspec.field(default_factory=_Names)


_DECODER: Final = msgspec.json.Decoder(_Named)


def _names_in(raw: bytes) -> ObjectMeta:
    try:
        names = _DECODER.decode(raw).metadata
    except UNREADABLE:
        return ObjectMeta()
    return ObjectMeta(
        name=names.name, namespace=names.namespace, resource_version=names.resource_version
    )
