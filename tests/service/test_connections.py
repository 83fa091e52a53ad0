"""The clients of one process: which of them waits for the lease."""

import asyncio

import numpy as np
import pytest

from kubestow.clock import SystemClock
from kubestow.cluster.http.http_client import HttpClient
from kubestow.service.connections import Connections, connect
from kubestow.service.metrics.process_metrics import ProcessMetrics
from kubestow.service.options import SchedulerOptions, parse_options
from kubestow.service.run import SchedulerProcess


@pytest.mark.parametrize("has_election", [True, False])
def test_what_the_scheduler_writes_waits_for_the_lease_and_nothing_else(has_election: bool) -> None:
    async def main() -> None:
        flags = [f"--leader-elect={has_election}", "--secure-port=0", "--master=http://server.test"]
        options = parse_options(flags)
        assert isinstance(options, SchedulerOptions)
        clock, rng = SystemClock(), np.random.default_rng(0)
        metrics = ProcessMetrics(options, clock, rng)
        connections = connect(options, metrics.requests, clock, rng, post=lambda function: None)
        process = SchedulerProcess(options, connections, metrics, clock, rng, hostname="host")
        expected = None if process.leadership is None else process.leadership.wait_valid
        assert (expected is not None) == has_election
        assert permissions(connections) == [expected, None, None]

    asyncio.run(main())


def permissions(connections: Connections) -> list[object]:
    found: list[object] = []
    for client in (connections.main, connections.events, connections.election):
        assert isinstance(client, HttpClient)
        found.append(client.session.may_write)
    return found
