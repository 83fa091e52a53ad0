"""The cluster of a recording and the pods as they arrived, to be placed by other schedulers.

What the recorded scheduler and the controllers did because of its decisions is left out: bindings,
conditions, evictions of victims, volumes that were provisioned, devices that were allocated. What
came from outside is kept:

    objects of the first lists     the cluster at the start, with the pods that had a node
    all other pods                 arrive at their recorded time, without a node
    pods of Jobs, and those        run for as long as they did, from when they get a node
    without a controller
    pods of other controllers      are deleted when they were
    nodes and all other objects    change and go when they did

Times are those of the recording, from its start.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from kubestow.api.decode import decode_json, to_document
from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.clock import NANOSECONDS
from kubestow.cluster.documents import as_object, objects_in, value_at
from kubestow.cluster.resources import default_resources
from kubestow.errors import DecodeError, InputError
from kubestow.recording.file import RecordingReader
from kubestow.recording.format import Put, Record, RecordedAttempt, Removed, kind_of
from kubestow.simulator.comparison.task import RecordedChange, RecordedRun
from kubestow.simulator.pretended_process import RUN_SECONDS
from kubestow.simulator.scenario.scenario import Scenario, Step
from kubestow.simulator.scenario.world import ScenarioWorld

# The first lists are complete before the first attempt; without attempts, after this time.
_LISTS_S: Final = 10.0
# After the last record, so that what arrived last is placed.
_REST_S: Final = 60.0
_SAMPLES: Final = 500
_RESOURCES: Final = default_resources()
# Their later versions are made by controllers because of decisions.
_FIRST_VERSION_ONLY: Final = ("PersistentVolumeClaim", "ResourceClaim", "PodGroup")
_MADE_BY_CONTROLLERS: Final = ("PersistentVolume", "VolumeAttachment")
_PHASES_AT_END: Final = ("Succeeded", "Failed")

# Kind, namespace, name.
_Key = tuple[str, str, str]


def read_recording(path: Path) -> RecordedRun:
    """What happened from outside; InputError if this is no recording or a damaged one."""
    reader = RecordingReader(path)
    reading = _Reading(_end_of_lists(reader))
    try:
        for record in reader:
            reading.follow(record)
    except DecodeError as error:
        raise InputError(f"{path} is damaged: {error}") from error
    started = datetime.fromtimestamp(reader.header.started_ns // NANOSECONDS, UTC)
    return RecordedRun(
        start=started.isoformat(),
        until_s=reading.last_s + _REST_S,
        documents=reading.documents(path),
        changes=reading.changes(),
    )


def recorded_scenario(name: str, recorded: RecordedRun) -> Scenario:
    """A scenario that plays it."""

    def steps(seed: int) -> Iterator[Step]:
        for change in recorded.changes:
            yield Step(change.time_s, partial(_apply, change))

    return Scenario(
        name=name,
        until_s=recorded.until_s,
        documents=recorded.documents,
        steps=[steps],
        start=datetime.fromisoformat(recorded.start),
        sample_s=recorded.until_s / _SAMPLES,
        has_controllers=False,
        start_delay_s=0.0,
    )


def _apply(change: RecordedChange, world: ScenarioWorld) -> None:
    document, store = change.document, world.store
    metadata = as_object(document["metadata"])
    resource = store.served.of_kind(document["apiVersion"], document["kind"]).stored
    namespace: str = metadata.get("namespace", "")
    known = store.find(resource, namespace, metadata["name"])
    if change.is_removed:
        if known is not None and (not metadata.get("uid") or known.uid == metadata["uid"]):
            world.remove(known)
    elif known is None:
        store.load([document], admission=False)
    elif document["kind"] != "Pod":
        store.replace(resource, document)


def _end_of_lists(records: Iterable[Record]) -> float:
    """When the cluster of the start is complete."""
    for record in records:
        time_s = record.at_ns / NANOSECONDS
        if isinstance(record, RecordedAttempt) or time_s > _LISTS_S:
            return min(time_s, _LISTS_S)
    return _LISTS_S


class _PodLife:
    """What a recording shows of one pod."""

    def __init__(self, document: JsonObject, created_s: float) -> None:
        self.document = document
        self.created_s = created_s
        self.bound_s = created_s if value_at(document, "spec", "nodeName") else None
        self.removed_s: float | None = None
        self.is_victim = False

    def arriving(self) -> JsonObject:
        """The pod as it arrives, or is there at the start."""
        document: JsonObject = {**self.document, "metadata": {**self.document["metadata"]}}
        if not value_at(document, "spec", "nodeName"):
            document.pop("status", None)
        document["metadata"].pop("resourceVersion", None)
        duration_s = self._duration_s()
        if duration_s is not None:
            annotations = as_object(document["metadata"].get("annotations"))
            document["metadata"]["annotations"] = {**annotations, RUN_SECONDS: repr(duration_s)}
            document["spec"] = {**as_object(document.get("spec")), "restartPolicy": "Never"}
        return document

    def _duration_s(self) -> float | None:
        """How long it ran, if it ended by itself."""
        if self.bound_s is None or self.removed_s is None or not self._ends_by_itself():
            return None
        return round(self.removed_s - self.bound_s, 3)

    def _ends_by_itself(self) -> bool:
        owners = objects_in(value_at(self.document, "metadata", "ownerReferences"))
        kinds = [owner.get("kind") for owner in owners if owner.get("controller")]
        return not self.is_victim and kinds in ([], ["Job"])

    def removal(self) -> RecordedChange | None:
        """When it goes, if that is not because it ended or was evicted for another pod."""
        if self.removed_s is None or self.is_victim or self._duration_s() is not None:
            return None
        return RecordedChange(
            time_s=self.removed_s, document=_name_only(self.document), is_removed=True
        )


class _Reading:
    """Follows the records in their order."""

    def __init__(self, lists_end_s: float) -> None:
        self._lists_end_s = lists_end_s
        self.last_s = 0.0
        # By UID; those that are there by namespace and name.
        self._pods: dict[str, _PodLife] = {}
        self._present: dict[str, _PodLife] = {}
        # The last version of all other objects, and those of the start.
        self._others: dict[_Key, JsonObject] = {}
        self._first: dict[_Key, JsonObject] = {}
        self._changes: list[RecordedChange] = []

    def follow(self, record: Record) -> None:
        time_s = round(record.at_ns / NANOSECONDS, 3)
        self.last_s = max(self.last_s, time_s)
        match record:
            case Put():
                self._put(record, time_s)
            case Removed():
                self._remove(record, time_s)
            case RecordedAttempt():
                for victim in record.victims:
                    if victim in self._present:
                        self._present[victim].is_victim = True
            case _:
                pass

    def _put(self, record: Put, time_s: float) -> None:
        document = _document(record.kind, record.text)
        if document is None:
            return
        if record.kind == "Pod":
            self._put_pod(document, time_s)
            return
        key = _key(document)
        known = self._others.get(key)
        if known == document:
            return
        self._others[key] = document
        if time_s <= self._lists_end_s:
            self._first[key] = document
        elif record.kind in _MADE_BY_CONTROLLERS:
            return
        elif record.kind not in _FIRST_VERSION_ONLY:
            self._changes.append(RecordedChange(time_s=time_s, document=document))
        elif known is None:
            self._changes.append(RecordedChange(time_s=time_s, document=_unbound(document)))

    def _put_pod(self, document: JsonObject, time_s: float) -> None:
        metadata = document["metadata"]
        uid, name = metadata.get("uid", ""), f"{metadata.get('namespace')}/{metadata['name']}"
        life = self._pods.get(uid)
        if life is None:
            life = self._pods[uid] = self._present[name] = _PodLife(document, time_s)
        if life.bound_s is None and value_at(document, "spec", "nodeName"):
            life.bound_s = time_s
        if life.removed_s is None and value_at(document, "status", "phase") in _PHASES_AT_END:
            life.removed_s = time_s

    def _remove(self, record: Removed, time_s: float) -> None:
        if record.kind == "Pod":
            life = self._present.pop(f"{record.namespace}/{record.name}", None)
            if life is not None and life.removed_s is None:
                life.removed_s = time_s
            return
        document = self._others.pop((record.kind, record.namespace, record.name), None)
        if document is None or record.kind in _MADE_BY_CONTROLLERS:
            return
        if time_s <= self._lists_end_s:
            self._first.pop((record.kind, record.namespace, record.name), None)
        else:
            self._changes.append(
                RecordedChange(time_s=time_s, document=_name_only(document), is_removed=True)
            )

    # --- the result ---

    def documents(self, path: Path) -> list[Document]:
        """The cluster at the start."""
        pods = [life.arriving() for life in self._pods.values() if self._is_first(life)]
        objects = [*self._first.values(), *pods]
        return [Document(each, f"{path}: {each['kind']}") for each in objects]

    def changes(self) -> list[RecordedChange]:
        """Everything after the start, in the order of time."""
        found = list(self._changes)
        for life in self._pods.values():
            if not self._is_first(life):
                found.append(RecordedChange(time_s=life.created_s, document=life.arriving()))
            removal = life.removal()
            if removal is not None:
                found.append(removal)
        return sorted(found, key=lambda change: change.time_s)

    def _is_first(self, life: _PodLife) -> bool:
        """Whether it ran at the start. One that waited arrives, so that the order is kept."""
        has_node = value_at(life.document, "spec", "nodeName")
        return bool(has_node) and life.created_s <= self._lists_end_s


def _document(kind: str, text: bytes) -> JsonObject | None:
    """The object with its kind; None if it is of a kind that this version does not read."""
    cls = kind_of(kind)
    if cls is None:
        return None
    resource = _RESOURCES.of_type(cls)
    fields = to_document(decode_json(cls, text))
    metadata: JsonObject = fields.setdefault("metadata", {})
    metadata.pop("resourceVersion", None)
    if not metadata.get("name"):
        raise DecodeError(f"it has a {kind} without a name")
    return {**fields, "apiVersion": resource.api_version, "kind": resource.kind}


def _key(document: JsonObject) -> _Key:
    metadata: dict[str, Any] = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]


def _unbound(document: JsonObject) -> JsonObject:
    """A claim or a group without what was decided for it."""
    return {field: value for field, value in document.items() if field != "status"}


def _name_only(document: JsonObject) -> JsonObject:
    return {field: document[field] for field in ("apiVersion", "kind", "metadata")}
