"""The embedded store against a plain dictionary, under any sequence of requests.

A model keeps the expected state after every version. After any sequence, the lists agree with it,
every kept version can be read again, and a watcher that starts at any version and applies its
events ends with the state of the list.
"""

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kubestow.api.decode import convert
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.selectors import EVERYTHING, Selection, parse_selection
from kubestow.apiserver.store import Change, Collection, Key, StoredObject
from kubestow.apiserver.watch import Watch, WatchEvent
from kubestow.cluster.resources import NODES, PODS
from kubestow.errors import ConflictError, GoneError, NotFoundError
from kubestow.testing.clock import ManualClock

HISTORY_MAX = 6
NAMESPACES = ("x", "y")
NAMES = ("a", "b", "c")
SELECTIONS = (
    EVERYTHING,
    parse_selection(PODS, namespace="x"),
    parse_selection(PODS, field_selector="status.phase!=Succeeded,status.phase!=Failed"),
    parse_selection(PODS, label_selector="app=web", field_selector="spec.nodeName="),
)

State = dict[Key, Any]


def selected(state: State, selection: Selection) -> State:
    return {key: document for key, document in state.items() if selection.matches(document)}


def replay(state: State, events: list[WatchEvent]) -> State:
    state = dict(state)
    for event in events:
        key = event.stored.key
        match event.type:
            case "ADDED":
                assert key not in state
                state[key] = event.document
            case "MODIFIED":
                assert key in state
                state[key] = event.document
            case "DELETED":
                del state[key]
            case "BOOKMARK":
                pass
    return state


class ClusterMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(1_000)
        self.cluster = MemoryCluster(self.clock, history_max=HISTORY_MAX)
        # The pods after each version, from the first one on.
        self.states: list[State] = [{}]
        self.watches: list[tuple[Watch, State]] = []

    keys = st.tuples(st.sampled_from(NAMESPACES), st.sampled_from(NAMES))
    # How many versions ago: mostly within the kept history, sometimes beyond.
    ages = st.integers(0, HISTORY_MAX + 4)

    @initialize(keys=st.sets(keys), app=st.sampled_from(["web", "api"]))
    def begin_with_some_pods(self, keys: set[Key], app: str) -> None:
        for key in sorted(keys):
            self.create(key, app, "")

    @property
    def state(self) -> State:
        return self.states[-1]

    def note(self) -> None:
        """Record the current state of the cluster; the rules below check the single changes."""
        stored = {stored.key: stored.document for stored in self.cluster.list(PODS).items}
        while len(self.states) <= self.cluster.version:
            self.states.append(stored)

    @rule(key=keys, app=st.sampled_from(["web", "api"]), node=st.sampled_from(["", "n1"]))
    def create(self, key: Key, app: str, node: str) -> None:
        namespace, name = key
        document = {
            "metadata": {"name": name, "namespace": namespace, "labels": {"app": app}},
            "spec": {"containers": [{"name": "main"}], "nodeName": node},
        }
        if key in self.state:
            with pytest.raises(ConflictError):
                self.cluster.create(PODS, document)
            return
        stored = self.cluster.create(PODS, document)
        self.note()
        assert self.state[key] is stored.document

    @rule()
    def write_something_else(self) -> None:
        self.cluster.create(NODES, {"metadata": {"generateName": "n-"}})
        self.note()

    @rule(key=keys)
    def bind(self, key: Key) -> None:
        old = self.state.get(key)
        if old is None:
            with pytest.raises(NotFoundError):
                self.cluster.bind(*key, "n2")
        elif old["spec"].get("nodeName") or "deletionTimestamp" in old["metadata"]:
            with pytest.raises(ConflictError):
                self.cluster.bind(*key, "n2")
        else:
            self.cluster.bind(*key, "n2", uid=old["metadata"]["uid"])
            self.note()
            assert self.state[key]["spec"] == {**old["spec"], "nodeName": "n2"}

    @rule(key=keys, phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]))
    def set_phase(self, key: Key, phase: str) -> None:
        old = self.state.get(key)
        if old is None:
            return
        self.cluster.patch(PODS, *key, {"status": {"phase": phase}}, subresource="status")
        is_change = old["status"]["phase"] != phase
        assert self.cluster.version == len(self.states) - 1 + is_change
        self.note()
        assert self.state[key]["status"] == {**old["status"], "phase": phase}

    @rule(key=keys, app=st.sampled_from(["web", "api"]), is_stale=st.booleans())
    def relabel(self, key: Key, app: str, is_stale: bool) -> None:
        old = self.state.get(key)
        if old is None:
            return
        metadata = {**old["metadata"], "labels": {"app": app}}
        if is_stale:
            metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) - 1)
            with pytest.raises(ConflictError):
                self.cluster.update(PODS, {**old, "metadata": metadata})
            return
        self.cluster.update(PODS, {**old, "metadata": metadata})
        self.note()
        assert self.state[key]["metadata"]["labels"] == {"app": app}
        assert self.state[key]["spec"] == old["spec"]

    @rule(key=keys, grace_period_s=st.sampled_from([None, 0, 5]))
    def delete(self, key: Key, grace_period_s: int | None) -> None:
        old = self.state.get(key)
        if old is None:
            with pytest.raises(NotFoundError):
                self.cluster.delete(PODS, *key)
            return
        self.cluster.delete(PODS, *key, grace_period_s=grace_period_s)
        self.note()
        is_running = old["spec"].get("nodeName") and old["status"]["phase"] in (
            "Pending",
            "Running",
        )
        assert (key in self.state) is bool(is_running and grace_period_s != 0)

    @rule(selection=st.sampled_from(SELECTIONS))
    def open_watch(self, selection: Selection) -> None:
        watch = self.cluster.watch(PODS, selection)
        self.watches.append((watch, {}))

    @rule()
    def read_watches(self) -> None:
        for index, (watch, state) in enumerate(self.watches):
            state = replay(state, watch.events_nowait())
            assert state == selected(self.state, watch.selection)
            self.watches[index] = watch, state

    @rule(age=ages, selection=st.sampled_from(SELECTIONS))
    def watch_from_any_version(self, age: int, selection: Selection) -> None:
        version = self.cluster.version - age
        if version < 1:
            return
        try:
            watch = self.cluster.watch(PODS, selection, from_version=version)
        except GoneError:
            assert self.cluster.version - version > HISTORY_MAX
            return
        state = selected(self.states[version], selection)
        assert replay(state, watch.events_nowait()) == selected(self.state, selection)
        watch.close()

    @rule(age=ages, selection=st.sampled_from(SELECTIONS), limit=st.integers(0, 3))
    def list_any_version(self, age: int, selection: Selection, limit: int) -> None:
        version = max(0, self.cluster.version - age)
        try:
            page = self.cluster.list(PODS, selection, version=version, is_exact=True, limit=limit)
        except GoneError:
            assert self.cluster.version - version > HISTORY_MAX
            return
        items = page.items
        while page.continue_token:
            page = self.cluster.list(
                PODS, selection, limit=limit, continue_token=page.continue_token
            )
            items = [*items, *page.items]
        expected = selected(self.states[version], selection)
        assert [stored.key for stored in items] == sorted(expected)
        assert all(stored.document == expected[stored.key] for stored in items)

    @invariant()
    def typed_objects_are_what_documents_convert_to(self) -> None:
        for stored in self.cluster.objects_of(PODS):
            assert stored.typed == convert(Pod, stored.document)
            assert stored.typed.metadata.resource_version == str(stored.version)

    @invariant()
    def what_was_read_is_never_written_to(self) -> None:
        for key, document in self.states[-1].items():
            assert self.cluster.get(PODS, *key).document is document


TestClusterMachine = ClusterMachine.TestCase


def stored(name: str, version: int, **parts: Any) -> StoredObject:
    metadata = {"name": name, "namespace": "x", "resourceVersion": str(version)}
    return StoredObject(PODS, {"metadata": metadata, **parts}, version)


def test_the_typed_object_is_converted_once():
    version = stored("a", 1)
    assert version.typed is version.typed


def test_the_next_version_reuses_the_typed_parts_that_stayed():
    spec = {"nodeName": "n1"}
    old = stored("a", 1, spec=spec, status={"phase": "Pending"})
    old_pod = old.typed
    metadata = {**old.metadata, "resourceVersion": "2"}
    document = {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}}
    new_pod = old.followed_by(document, 2).typed
    assert isinstance(old_pod, Pod)
    assert isinstance(new_pod, Pod)
    assert new_pod == convert(Pod, document)
    assert new_pod.spec is old_pod.spec


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"spec": {"nodeName": "n2"}}, id="status-vanishes"),
        pytest.param({"spec": None, "status": {"phase": "Running"}}, id="null"),
        pytest.param({"spec": {}, "status": {}, "extra": 1}, id="undeclared-field"),
    ],
)
def test_the_typed_object_follows_every_change_of_the_document(document: Any):
    old = stored("a", 1, spec={"nodeName": "n1"}, status={"phase": "Pending"})
    assert old.typed
    metadata = {**old.metadata, "labels": {"a": "b"}, "resourceVersion": "2"}
    document = {"metadata": metadata, **document}
    assert old.followed_by(document, 2).typed == convert(Pod, document)


def test_a_collection_without_history_has_only_the_current_state():
    collection = Collection(PODS, history_max=0)
    first = stored("a", 1)
    collection.apply(Change(1, None, first))
    assert collection.changes_since(1) == []
    assert collection.objects_at(1) == {("x", "a"): first}
    with pytest.raises(GoneError):
        collection.changes_since(0)


def test_a_document_is_made_when_it_is_first_read():
    edited: list[str] = []

    def with_phase(phase: str) -> Callable[[JsonObject], JsonObject]:
        def edit(document: JsonObject) -> JsonObject:
            edited.append(phase)
            return {**document, "status": {"phase": phase}}

        return edit

    first = stored("a", 1, spec={"nodeName": "n1"})
    running = first.edited(2, with_phase("Running"))
    ended = running.edited(3, with_phase("Succeeded"))
    assert ended.desired is first.document
    assert edited == []
    assert ended.document == {
        "metadata": {"name": "a", "namespace": "x", "resourceVersion": "3"},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Succeeded"},
    }
    assert ended.document is ended.document
    assert edited == ["Running", "Succeeded"]
    assert running.document["status"] == {"phase": "Running"}
    assert running.document["metadata"]["resourceVersion"] == "2"
    assert ended.typed.metadata.resource_version == "3"
