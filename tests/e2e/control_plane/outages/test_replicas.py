"""Two replicas with the default lease, of which one is killed again and again, or stopped.

A fail-over takes as long as the rules of the lease say: the standby reads the lease every 2 to
4.4 s, and takes over when it has not changed for 15 s.
"""

import asyncio
import itertools
import signal
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

LEASE_S = 15.0
READ_S_MAX = 4.4
SLACK_S = 3.0  # for requests on a busy machine
FAIL_OVER_S_MAX = LEASE_S + READ_S_MAX + SLACK_S
KILL_GAP_S = (1.0, 20.0)
LEADER_SHARE = 0.7


class Kill(NamedTuple):
    at_s: float
    sender: str


def test_schedulers_killed_at_random_lose_nothing(run_load: Any, seed: int) -> None:
    async def main(load: Any) -> None:
        print(f"seed {seed}")
        kills: list[Kill] = []
        killing = asyncio.create_task(kill_at_random(load, np.random.default_rng(seed), kills))
        await load.wait_all_bound()
        killing.cancel()
        assert kills
        delays_s = fail_overs(load.audit, kills)
        print(
            f"{len(kills)} kills; the other replica binds after "
            + ", ".join(f"{delay_s:.1f} s" for delay_s in delays_s)
        )
        assert all(delay_s <= FAIL_OVER_S_MAX for delay_s in delays_s)

    run_load(main, limit_s=1800)


async def kill_at_random(load: Any, rng: np.random.Generator, kills: list[Kill]) -> None:
    """Kill one of the two after random times; the leader more often."""
    await load.watch.wait_bound(1)
    while True:
        await asyncio.sleep(rng.uniform(*KILL_GAP_S))
        leader = load.leading()
        wants_leader = rng.random() < LEADER_SHARE
        place = leader if wants_leader and leader is not None else load.places[rng.integers(2)]
        if place.process is not None:
            kills.append(Kill(load.now_s(), place.sender))
            place.kill()


def fail_overs(audit: Any, kills: Sequence[Kill]) -> list[float]:
    """From the end of each leader to the first binding of the other replica.

    Left out are those where that one was killed, too, before it could bind.
    """
    delays_s: list[float] = []
    for kill, later in itertools.zip_longest(kills, kills[1:]):
        if audit.leader_at(kill.at_s) != kill.sender:
            continue
        first = audit.first_binding(kill.at_s, not_by=kill.sender)
        if first is not None and (later is None or first.arrived_s < later.at_s):
            delays_s.append(first.arrived_s - kill.at_s)
    return delays_s


def test_a_leader_that_was_stopped_past_its_lease_binds_nothing(run_load: Any) -> None:
    """It stops with hundreds of bindings waiting for the rate limit, whose time has then come."""

    async def main(load: Any) -> None:
        await load.watch.wait_bound(load.pod_count // 10)
        place = load.leading()
        stopped, sender = place.process, place.sender
        stopped_s = load.now_s()
        stopped.process.send_signal(signal.SIGSTOP)
        # What it had sent before is answered meanwhile.
        first = await load.audit.wait_first_binding(stopped_s + 1, not_by=sender)
        print(f"the other replica binds {first.arrived_s - stopped_s:.1f} s after the stop")
        assert first.arrived_s - stopped_s <= FAIL_OVER_S_MAX
        await asyncio.sleep(1)
        continued_s = load.now_s()
        stopped.process.send_signal(signal.SIGCONT)
        assert await stopped.exit_code() == 1
        assert "Leaderelection lost" in stopped.log
        print(f"the stopped one ends {load.now_s() - continued_s:.1f} s after it goes on")
        await load.wait_all_bound()
        late = [
            found
            for found in load.audit.bindings()
            if found.sender == sender and found.arrived_s > first.arrived_s
        ]
        assert not late

    run_load(main, pod_count=2000, qps=50, limit_s=300)
