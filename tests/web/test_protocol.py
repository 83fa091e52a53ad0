"""docs/reference/page.md and the structs have the same fields, in the same order."""

import re
from pathlib import Path

import msgspec
import pytest

from kubestow.apiserver.memory import MemoryCluster
from kubestow.simulator.live.actions import ClusterActions
from kubestow.simulator.live.time_control import PacedTime
from kubestow.simulator.paced_time import PacedLoop
from kubestow.testing import ManualClock
from kubestow.web import protocol

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "page.md").read_text(encoding="utf-8")


def section(title: str, level: int = 2) -> str:
    marks = "#" * level
    found = re.search(rf"^{marks} {title}\n(.*?)(?=^#{{1,{level}}} |\Z)", PAGE, re.M | re.S)
    assert found is not None, title
    return found[1]


def names(struct: type[msgspec.Struct]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(struct)]


def camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(map(str.capitalize, tail))


@pytest.mark.parametrize(
    ("struct", "text"),
    [
        (protocol.State, section("State")),
        (protocol.Batch, section("Batches")),
        (protocol.Words, section("State")),
        (protocol.ClockState, section("State")),
        (protocol.SchedulerState, section("State")),
        (protocol.ProfilePlugin, section("State")),
        (protocol.Leader, section("State")),
        (protocol.QueueState, section("State")),
        (protocol.Counts, section("State")),
        (protocol.Span, section("State")),
    ],
)
def test_every_field_is_described(struct: type[msgspec.Struct], text: str):
    assert [name for name in names(struct) if f"`{name}`" not in text] == []


@pytest.mark.parametrize(
    ("struct", "begin"),
    [
        (protocol.NodeRow, "A node, in this order:"),
        (protocol.PodRow, "A pod, in this order:"),
        (protocol.SeriesPoint, "A second of the cluster's time, in this order:"),
        (protocol.AttemptRow, "An attempt, in this order:"),
    ],
)
def test_columns_are_described_in_their_order(struct: type[msgspec.Struct], begin: str):
    text = PAGE[PAGE.index(begin) :]
    places = [text.index(f"`{camel(name)}`") for name in names(struct)]
    assert places == sorted(places)
    assert tuple(re.findall(r"`([a-z ]+)`", _row("places"))[1:]) == protocol.PLACES


def _row(name: str) -> str:
    return next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))


def test_every_action_is_described():
    loop = PacedLoop()
    clock = ManualClock()
    actions = ClusterActions(MemoryCluster(clock), clock, time=PacedTime(loop))
    loop.close()
    described = re.findall(r"^\| ((?:`[\w-]+`(?:, )?)+) \|", section("Actions"), re.M)
    assert {*re.findall(r"`([\w-]+)`", "".join(described))} == {*actions.names}
