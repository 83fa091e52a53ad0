"""What `kubestow demo --verbose` shows of each version."""

import asyncio
import re

import pytest

from kubestow.editions import edition_named
from kubestow.editions.walking import walk_edition
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time
from kubestow.simulator.walk import walk


def told(version: str) -> list[str]:
    lines: list[str] = []

    def say(now_s: float, subject: str, text: str) -> None:
        lines.append(f"{subject}: {text}")

    async def run() -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        if version == "v1.36":
            await walk(say, clock)
        else:
            await walk_edition(edition_named(version), say, clock)

    run_in_virtual_time(run())
    return lines


def places_of(pod: str, lines: list[str]) -> list[str]:
    found = (re.match(rf"queue: {pod}: .* -> ([a-z ]+) \(", line) for line in lines)
    return [match[1] for match in found if match]


@pytest.mark.parametrize(
    ("version", "places"),
    [
        pytest.param("v1.9", ["fifo", "none"] * 3, id="v1.9"),
        pytest.param(
            "v1.17", ["active", "none", "unschedulable", "backoff", "active", "none"], id="v1.17"
        ),
        pytest.param(
            "v1.20", ["active", "none", "unschedulable", "backoff", "active", "none"], id="v1.20"
        ),
    ],
)
def test_a_pod_goes_through_all_containers(version: str, places: list[str]) -> None:
    lines = told(version)
    assert places_of("big-0", lines) == places
    assert "decision: big-0 fits nowhere" in lines
    assert "snapshot: visited in this order: a-0 b-0 a-1" in lines
    assert "tree: a: a-0 a-1; b: b-0 b-1" in lines


def test_todays_pods_are_in_flight_meanwhile() -> None:
    lines = told("v1.36")
    assert places_of("web-0", lines) == ["active", "in flight", "none"]
    assert not any("expires" in line for line in lines)


@pytest.mark.parametrize("version", ["v1.9", "v1.17", "v1.20"])
def test_the_states_of_the_cache_are_shown(version: str) -> None:
    lines = told(version)
    states = [line for line in lines if line.startswith("cache: web-0")]
    node = re.search(r"assumed on (\S+)", states[0])
    assert node is not None
    assert states == [
        f"cache: web-0: absent -> assumed on {node[1]} (assume_pod)",
        "cache: web-0: its binding has ended, the assumption expires in 30 s",
        f"cache: web-0: assumed on {node[1]} -> added on {node[1]} (add_pod)",
        f"cache: web-0: added on {node[1]} -> absent (remove_pod)",
    ]


def test_the_order_of_v1_17_continues_where_it_ended() -> None:
    orders = [line for line in told("v1.17") if line.startswith("snapshot")]
    assert orders[-1] != "snapshot: visited in this order: a-0 b-0 a-1 b-1"
