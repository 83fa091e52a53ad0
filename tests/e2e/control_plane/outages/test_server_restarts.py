"""The API server and etcd are killed under load, and started again on the same data."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

AWAY_S = 2.0
KILLS = 3


def restart_api_server(plane: Any) -> Callable[[], None]:
    plane.kill_api_server()
    return plane.start_api_server


def restart_etcd(plane: Any) -> Callable[[], None]:
    plane.kill_etcd()
    return plane.start_etcd


@pytest.mark.parametrize("kill", [restart_api_server, restart_etcd], ids=["api-server", "etcd"])
def test_a_server_that_is_killed_under_load_loses_no_pod(run_load: Any, kill: Any) -> None:
    async def main(load: Any) -> None:
        plane = load.bench.plane
        delays_s: list[float] = []
        for number in range(1, KILLS + 1):
            await load.watch.wait_bound(number * load.pod_count // (KILLS + 2))
            start = kill(plane)
            await asyncio.sleep(AWAY_S)
            start()
            await plane.wait_ready()
            ready_s = load.now_s()
            # On a slow machine the others may be bound before the server counts as ready.
            await load.add_pod(f"late-{number}")
            first = await load.audit.wait_first_binding(ready_s)
            delays_s.append(first.arrived_s - ready_s)
        await load.wait_all_bound()
        codes = [place.exit_codes for place in load.places]
        print(
            "first binding after the server is ready: "
            + ", ".join(f"{delay_s:.1f} s" for delay_s in delays_s)
            + f"; schedulers ended with {codes}"
        )

    run_load(main, limit_s=900)
