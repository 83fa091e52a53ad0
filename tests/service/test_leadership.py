"""The lease waits neither for the scheduler's loop nor for that of the port."""

import asyncio
import threading
from pathlib import Path

import numpy as np
import pytest

from kubestow.clock import SystemClock
from kubestow.service.connections import connect
from kubestow.service.loops import LoopThreads
from kubestow.service.metrics.process_metrics import ProcessMetrics
from kubestow.service.options import SchedulerOptions, parse_options
from kubestow.service.run import SchedulerProcess
from tools.https_cluster import HttpsCluster

LIMIT_S = 300
# Each was asked for and answered while the port stood still.
RENEWALS = 10
ELECTION = (
    "--leader-elect-lease-duration=60s",
    "--leader-elect-renew-deadline=50s",
    "--leader-elect-retry-period=200ms",
)


@pytest.mark.slow
def test_a_port_that_stands_still_does_not_lose_the_lease(tmp_path: Path) -> None:
    go_on = threading.Event()

    async def stand_still() -> None:
        go_on.wait()

    async def main() -> None:
        cluster, clock, rng = HttpsCluster(tmp_path), SystemClock(), np.random.default_rng(0)
        async with asyncio.timeout(LIMIT_S), cluster.serving():
            kubeconfig = f"--kubeconfig={cluster.kubeconfig}"
            options = parse_options([kubeconfig, "--secure-port=0", *ELECTION])
            assert isinstance(options, SchedulerOptions)
            metrics = ProcessMetrics(options, clock, rng)
            loops = LoopThreads(clock)
            try:
                connections = connect(options, metrics.requests, clock, rng, post=loops.post)
                process = SchedulerProcess(
                    options, connections, metrics, clock, rng, hostname="host", loops=loops
                )
                service = asyncio.create_task(process.run())
                loops.port.spawn(stand_still())
                await cluster.wait_for_renewals(RENEWALS)
                assert process.is_active
                go_on.set()
                process.request_stop()
                assert await service == 0
                assert await cluster.holder() == ""
            finally:
                go_on.set()
                loops.close()

    asyncio.run(main())
