"""The objects of one resource in an API server, and their recent changes.

Each write makes a new `StoredObject`; the old one stays unchanged for its readers. The last changes
are kept, so that a watch can start, and a list can be read, at a recent version.

A writer inside the process, such as a simulated kubelet, gives the typed struct of the next version
and how the document changes: that document is made when it is first read, which is often never. A
version refers to the last document there was and to the changes since, not to older versions: these
are freed when they leave the history, while they are still in the caches of the processor.

Invariants: documents are never modified; versions of a collection grow with its changes; undoing
the kept changes newer than a version gives the state at that version.
Not here: which writes are allowed (`memory`), the events of a change (`watch`).
"""

import base64
from collections import deque
from collections.abc import Callable
from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING, Final

import msgspec

from kubestow.api.decode import convert
from kubestow.api.meta import ApiObject, JsonObject, Object, ObjectMeta
from kubestow.apiserver.refusals import (
    bad_request,
    continue_expired,
    invalid_version,
    too_old_version,
)
from kubestow.cluster.documents import is_object
from kubestow.cluster.resources import ApiResource

Key = tuple[str, str]  # namespace (empty for kinds without) and name
# Makes the next document of an object without modifying the given one; each time the same.
Edit = Callable[[JsonObject], JsonObject]


VERSION_DIGITS_MAX: Final = 20  # of a resource version; more are out of range


def parse_version(text: str) -> int:
    """A resource version in a request, 0 for an empty text; 400 if it is none."""
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal()):
        raise invalid_version(text, "invalid syntax")
    if len(text) > VERSION_DIGITS_MAX:
        raise invalid_version(text, "value out of range")
    return int(text)


class StoredObject:
    """One version of one object: the full document and its typed struct, each on demand."""

    __slots__ = (
        "_document",
        "_edits",
        "_root",
        "key",
        "known_typed",
        "resource",
        "typed",
        "version",
    )

    # Made when it is first read; plain attributes are read without a call.
    typed: ApiObject

    def __init__(
        self,
        resource: ApiResource,
        document: JsonObject,
        version: int,
        typed: ApiObject | None = None,
        key: Key | None = None,
        edits: tuple[Edit, ...] = (),
    ) -> None:
        """`typed`, if given, must be what the document converts to, and `key` its key: all versions
        of an object share one. `edits` make the document, but for the version, of the one given."""
        if key is None:
            metadata: JsonObject = document["metadata"]
            key = metadata.get("namespace", ""), metadata.get("name", "")
        self.key: Final = key
        self.resource: Final = resource
        self.version: Final = version
        self._document: JsonObject | None = None if edits else document
        # The typed struct, if it was read or given before.
        self.known_typed = typed
        if typed is not None:
            self.typed = typed
        # The document that it is made of, and how; once it is made, itself and nothing.
        self._root = document
        self._edits = edits

    @property
    def document(self) -> JsonObject:
        document = self._document
        return self._make_document() if document is None else document

    def _make_document(self) -> JsonObject:
        """Apply the edits of this version and of those before it that had no document."""
        document = self._root
        for edit in self._edits:
            document = edit(document)
        document = self._document = self._root = _with_version(document, self.version)
        self._edits = ()
        return document

    @property
    def desired(self) -> JsonObject:
        """A document with the same metadata but for the resource version, and the same spec but
        for the node of a pod, and perhaps an older status; see `edited`.

        No document is made for it.
        """
        return self._root

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> ApiObject:
            """Called for an attribute that is not set."""
            if name != "typed":
                raise AttributeError(name)
            typed = self.typed = self.known_typed = convert(self.resource.cls, self.document)
            return typed

    @property
    def metadata(self) -> JsonObject:
        return self.document["metadata"]

    @property
    def name(self) -> str:
        return self.key[1]

    @property
    def uid(self) -> str:
        typed = self.known_typed
        if typed is not None:
            return typed.metadata.uid
        return self.document["metadata"].get("uid", "")

    def at_version(self, version: int) -> "StoredObject":
        """A copy of the state under another version, for the event of its deletion."""
        if self.known_typed is None:
            return self.followed_by(_with_version(self.document, version), version)
        return self.edited(version, _unchanged)

    def edited(self, version: int, edit: Edit, **parts: Object) -> "StoredObject":
        """The next version of this object, from parts of its typed struct: spec and status.

        `edit` makes its document, but for the resource version, of this one's; only the status
        differs, and the node of a pod that is bound. The parts must be what those of that document
        convert to.
        """
        replace, typed = msgspec.structs.replace, self.typed
        metadata = replace(typed.metadata, resource_version=str(version))
        typed = replace(typed, metadata=metadata, **parts)
        edits = (*self._edits, edit)
        return StoredObject(self.resource, self._root, version, typed, self.key, edits)

    def followed_by(self, document: JsonObject, version: int) -> "StoredObject":
        """The next version of this object; reuses the unchanged typed parts."""
        typed = self._derived_typed(document)
        return StoredObject(self.resource, document, version, typed, self.key)

    def _derived_typed(self, document: JsonObject) -> ApiObject | None:
        typed = self.known_typed
        if typed is None:
            return None
        parts = _struct_parts(type(typed))
        changed: dict[str, Object] = {}
        for field in self.document.keys() | document.keys():
            old, new = self.document.get(field), document.get(field)
            if old is new:
                continue
            part = parts.get(field)
            if part is None or not is_object(new):
                # A field without a struct of its own: the whole object is converted on demand.
                return None
            changed[field] = self._derived_part(typed, field, part, new)
        return msgspec.structs.replace(typed, **changed)

    def _derived_part(
        self, typed: ApiObject, field: str, part: type[Object], new: JsonObject
    ) -> Object:
        # Every write changes the resource version, and most change nothing else in metadata.
        if part is ObjectMeta:
            text: str = new["resourceVersion"]
            if {**self.metadata, "resourceVersion": text} == new:
                return msgspec.structs.replace(typed.metadata, resource_version=text)
        return convert(part, new)

    def __repr__(self) -> str:
        return f"StoredObject({self.resource.qualified_name} {self.key} @{self.version})"


def _unchanged(document: JsonObject) -> JsonObject:
    return document


def _with_version(document: JsonObject, version: int) -> JsonObject:
    metadata = {**document["metadata"], "resourceVersion": str(version)}
    return {**document, "metadata": metadata}


@cache
def _struct_parts(cls: type[ApiObject]) -> dict[str, type[Object]]:
    """The fields of a kind that are structs: metadata, and where there are any, spec and status."""
    return {
        field.encode_name: field.type
        for field in msgspec.structs.fields(cls)
        if isinstance(field.type, type) and issubclass(field.type, Object)
    }


class Change:
    """One write: the object before and after it, None where there is none."""

    __slots__ = ("_last_state", "new", "old", "version")

    def __init__(self, version: int, old: StoredObject | None, new: StoredObject | None) -> None:
        self.version: Final = version
        self.old: Final = old
        self.new: Final = new
        self._last_state: StoredObject | None = None

    @property
    def key(self) -> Key:
        either = self.new or self.old
        assert either is not None
        return either.key

    def last_state(self) -> StoredObject:
        """The object of a DELETED event: its last state, at the change's version."""
        if self._last_state is None:
            assert self.old is not None
            self._last_state = self.old.at_version(self.version)
        return self._last_state


class Collection:
    """The objects of one resource and their recent history."""

    def __init__(self, resource: ApiResource, *, history_max: int) -> None:
        self.resource = resource
        self.objects: dict[Key, StoredObject] = {}
        # Of the latest change.
        self.version = 0
        self._history: deque[Change] = deque(maxlen=history_max)
        # The newest change that was dropped: no older state can be rebuilt.
        self._forgotten_version = 0

    def redefine(self, resource: ApiResource) -> None:
        """Store the objects under a changed definition of their resource."""
        self.resource = resource
        self.objects = {
            key: StoredObject(resource, stored.document, stored.version, key=key)
            for key, stored in self.objects.items()
        }

    def apply(self, change: Change) -> None:
        """Make the change part of the state and of the history."""
        self.version, new = change.version, change.new
        if new is None:
            del self.objects[change.key]
        else:
            self.objects[new.key] = new
        history = self._history
        if len(history) == history.maxlen:
            self._forgotten_version = history[0].version if history else change.version
        history.append(change)

    def changes_since(self, version: int) -> list[Change]:
        """The changes after a version, oldest first; 410 if some of them were dropped."""
        if version < self._forgotten_version:
            raise too_old_version(version, self._forgotten_version)
        newest_first = takewhile(lambda change: change.version > version, reversed(self._history))
        return list(newest_first)[::-1]

    def objects_at(self, version: int) -> dict[Key, StoredObject]:
        """The objects as they were at a version; 410 if that is too long ago."""
        if version < self._forgotten_version:
            raise continue_expired()
        changes = self.changes_since(version)
        if not changes:
            return self.objects
        objects = self.objects.copy()
        for change in reversed(changes):
            if change.old is None:
                objects.pop(change.key, None)
            else:
                objects[change.key] = change.old
        return objects


def encode_token(version: int, last: Key) -> str:
    """What continues a list: the version of its first page, and the last object of this one."""
    return base64.urlsafe_b64encode(msgspec.json.encode((version, *last))).decode()


def decode_token(token: str) -> tuple[int, Key]:
    try:
        raw = base64.urlsafe_b64decode(token)
        version, namespace, name = msgspec.json.decode(raw, type=tuple[int, str, str])
    except ValueError as error:  # of the encoding, the text or its content
        problem = f"continue key is not valid: {error}"
        raise bad_request(f"invalid continue token: {problem}") from error
    return version, (namespace, name)
