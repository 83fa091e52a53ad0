"""Changes in the order of their writes, and what comes next."""

from typing import Any

import msgspec

from kubestow.api.decode import encode_json
from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod, assign
from kubestow.clock import NANOSECONDS
from kubestow.recording.format import Put, Record, Removed
from kubestow.simulator.replay import writes
from kubestow.simulator.replay.writes import Writes
from kubestow.testing import make_node, make_pod

P = make_pod("p", uid="p")


def put(seconds: float, new: Any, version: str) -> Put:
    metadata = msgspec.structs.replace(new.metadata, resource_version=version)
    new = msgspec.structs.replace(new, metadata=metadata)
    return Put(round(seconds * NANOSECONDS), type(new).__name__, encode_json(new))


def names(records: list[Record]) -> list[str]:
    return [change.new.metadata.name for change in Writes(records, (Pod, Node))]


def test_changes_of_two_kinds_are_in_the_order_of_their_versions() -> None:
    recorded: list[Record] = [
        put(1, P, "7"),
        put(1.1, make_node("n"), "5"),
        put(1.2, make_node("m"), "8"),
    ]
    assert names(recorded) == ["n", "p", "m"]


def test_far_apart_the_order_of_the_recording_counts() -> None:
    """Versions may begin again, after an API server was restored."""
    assert names([put(1, P, "7000"), put(60, make_node("n"), "5")]) == ["p", "n"]


def test_what_has_no_version_keeps_its_place() -> None:
    recorded: list[Record] = [
        put(1, P, "7"),
        Removed(round(1.1e9), "Node", "", "gone", b""),
        put(1.2, make_node("opaque"), "x7"),
        put(1.3, make_node("n"), "8"),
    ]
    assert names(recorded) == ["p", "gone", "opaque", "n"]


def test_versions_of_a_pod_are_known_ahead() -> None:
    followed = Writes([put(1, P, "1"), put(2, assign(P, "n"), "3"), put(99, P, "4")], (Pod,))
    ahead = [[pod.spec.node_name for pod in followed.ahead_of("p")] for _ in followed]
    assert ahead == [["n"], [], []]


def test_as_many_changes_are_held_at_most(monkeypatch: Any) -> None:
    monkeypatch.setattr(writes, "AHEAD_MAX", 2)
    nodes: list[ApiObject] = [make_node(f"n{number}") for number in range(5)]
    taken = 0

    def records() -> Any:
        nonlocal taken
        for number, node in enumerate(nodes):
            taken += 1
            yield put(number / 1000, node, str(number + 1))

    for position, _ in enumerate(Writes(records(), (Node,)), start=1):
        assert taken <= position + 2
