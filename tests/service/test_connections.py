"""The clients of one process: which of them waits for the lease."""

import asyncio

import numpy as np
import pytest

from kubestow.clock import SystemClock
from kubestow.cluster.http.http_client import HttpClient
from kubestow.errors import ApiError, UnreachableError
from kubestow.service.connections import Connections, connect, read_server_version
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


class Server:
    """Answers with these, one after the other."""

    def __init__(self, *answers: str | ApiError) -> None:
        self.answers = list(answers)

    async def server_version(self) -> str:
        answer = self.answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer


AWAY, FORBIDDEN = UnreachableError("connection refused"), ApiError("forbidden", code=403)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param(["v1.36.4"], "v1.36.4", id="at-once"),
        pytest.param([AWAY, AWAY, FORBIDDEN, "v1.36.4"], "v1.36.4", id="late"),
        pytest.param([FORBIDDEN, AWAY, FORBIDDEN, FORBIDDEN], "", id="refused"),
        pytest.param([AWAY] * 4, None, id="away"),
    ],
)
def test_a_version_is_waited_for_unless_it_is_refused(
    answers: list[str | ApiError], expected: str | None
) -> None:
    server = Server(*answers)
    assert asyncio.run(read_server_version(server, SystemClock(), [0.0] * 3)) == expected
    assert server.answers == []
