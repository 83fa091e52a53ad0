"""The event that reports a change of the leader."""

import asyncio

import numpy as np
import pytest

from kubestow.apiserver.http.server import ApiServer
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cluster.election import LeaderElector
from kubestow.cluster.http.http_client import HttpClient
from kubestow.cluster.http.kubeconfig import ServerConfig
from kubestow.cluster.http.session import ApiSession
from kubestow.cluster.resources import EVENTS
from kubestow.service.leadership import events_path, leadership_event
from kubestow.testing.clock import ManualClock


@pytest.mark.parametrize(
    ("is_leading", "note"),
    [
        pytest.param(True, "h_1 became leader", id="became"),
        pytest.param(False, "h_1 stopped leading", id="stopped"),
    ],
)
def test_a_server_accepts_it(
    cluster: MemoryCluster, clock: ManualClock, is_leading: bool, note: str
):
    async def main() -> None:
        elector = LeaderElector(
            MemoryClient(cluster), clock, identity="h_1", rng=np.random.default_rng(0)
        )
        assert elector.lease is None
        await elector.try_once()
        lease = elector.lease
        assert lease is not None
        event = leadership_event(
            lease,
            identity=elector.identity,
            is_leading=is_leading,
            component="default-scheduler",
            now_ns=clock.now_ns(),
        )
        server = ApiServer(cluster, clock)
        port = await server.start()
        session = ApiSession(ServerConfig(server=f"http://127.0.0.1:{port}"), clock)
        client = HttpClient(session, rng=np.random.default_rng(0))
        await client.create_document(events_path(lease), event)
        client.close()
        await server.close()
        await asyncio.sleep(0)

    asyncio.run(main())
    (stored,) = cluster.list(EVENTS).items
    assert stored.metadata["name"] == "kube-scheduler.17979cfe362a0000"
    assert stored.document["note"] == note
    assert stored.document["regarding"]["kind"] == "Lease"
    assert stored.document["reason"] == "LeaderElection"
