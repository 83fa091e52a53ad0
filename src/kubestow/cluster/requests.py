"""The requests of a scheduler as values: what is asked of an API server, real or in memory.

`ClusterClient.send` takes one; its docstring says what the answer is. A client that notes, delays
or refuses requests reads `verb`, `kind` and `key`, which all of them have.
"""

from typing import Any, ClassVar, Literal

import msgspec

from kubestow.api.coordination import Event
from kubestow.api.meta import ApiObject, Condition, JsonObject
from kubestow.api.pod import Pod
from kubestow.cluster.resources import Subresource

PatchType = Literal["merge", "strategic"]


class Request(msgspec.Struct, frozen=True, gc=False):
    """`is_write`: it changes something. `is_decoded`: its answer is used."""

    verb: ClassVar[str]
    is_write: ClassVar[bool] = False
    is_decoded: ClassVar[bool] = True

    @property
    def kind(self) -> type[ApiObject]:
        """The type of the objects it is about."""
        raise NotImplementedError

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name of the object; empty for all of a kind."""
        return "", ""


class _OfKind(Request, frozen=True, gc=False):
    cls: type[Any]

    @property
    def kind(self) -> type[ApiObject]:
        return self.cls


class IsServed(_OfKind, frozen=True, gc=False):
    """Whether the server has this kind: bool."""

    verb: ClassVar[str] = "is_served"


class ListObjects(_OfKind, frozen=True, gc=False):
    """A sequence of objects."""

    verb: ClassVar[str] = "list"
    namespace: str = ""
    field_selector: str = ""
    label_selector: str = ""


class ListAndWatch(_OfKind, frozen=True, gc=False):
    """A `Listing`."""

    verb: ClassVar[str] = "list_and_watch"
    field_selector: str = ""
    label_selector: str = ""
    resource_version: str = ""


class WatchObjects(_OfKind, frozen=True, gc=False):
    """An `ObjectWatch`."""

    verb: ClassVar[str] = "watch"
    resource_version: str
    namespace: str = ""
    field_selector: str = ""
    label_selector: str = ""


class _OfNamed(_OfKind, frozen=True, gc=False):
    namespace: str
    name: str

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


class Get(_OfNamed, frozen=True, gc=False):
    """The object."""

    verb: ClassVar[str] = "get"


class Patch(_OfNamed, frozen=True, gc=False):
    """The object as it is then."""

    verb: ClassVar[str] = "patch"
    is_write: ClassVar[bool] = True
    patch: JsonObject
    patch_type: PatchType = "strategic"
    subresource: Subresource = ""


class Delete(_OfNamed, frozen=True, gc=False):
    """Nothing. With a UID only if the object has that UID."""

    verb: ClassVar[str] = "delete"
    is_write: ClassVar[bool] = True
    is_decoded: ClassVar[bool] = False
    uid: str = ""
    grace_period_s: int | None = None


class _OfObject(Request, frozen=True, gc=False):
    is_write: ClassVar[bool] = True
    new: ApiObject

    @property
    def kind(self) -> type[ApiObject]:
        return type(self.new)

    @property
    def key(self) -> tuple[str, str]:
        metadata = self.new.metadata
        return metadata.namespace, metadata.name


class Create(_OfObject, frozen=True, gc=False):
    """The object as the server keeps it."""

    verb: ClassVar[str] = "create"


class Update(_OfObject, frozen=True, gc=False):
    """The object as it is then: the changes from `old` to `new` are made."""

    verb: ClassVar[str] = "update"
    old: ApiObject
    subresource: Subresource = ""


class _OfPod(Request, frozen=True, gc=False):
    is_write: ClassVar[bool] = True
    is_decoded: ClassVar[bool] = False
    pod: Pod

    @property
    def kind(self) -> type[ApiObject]:
        return Pod

    @property
    def key(self) -> tuple[str, str]:
        metadata = self.pod.metadata
        return metadata.namespace, metadata.name


class BindPod(_OfPod, frozen=True, gc=False):
    """Nothing: the pod is placed on the node."""

    verb: ClassVar[str] = "bind"
    node_name: str


class PatchPodStatus(_OfPod, frozen=True, gc=False):
    """Nothing: a condition and a nomination are written."""

    verb: ClassVar[str] = "patch_pod_status"
    condition: Condition | None = None
    nominated_node_name: str | None = None


class DeletePod(_OfPod, frozen=True, gc=False):
    """Nothing: the pod is deleted with its own grace period."""

    verb: ClassVar[str] = "delete_pod"


class CreateEvent(Request, frozen=True, gc=False):
    """Nothing: the event is written."""

    verb: ClassVar[str] = "create_event"
    is_write: ClassVar[bool] = True
    is_decoded: ClassVar[bool] = False
    event: Event

    @property
    def kind(self) -> type[ApiObject]:
        return Event

    @property
    def key(self) -> tuple[str, str]:
        metadata = self.event.metadata
        return metadata.namespace, metadata.name
