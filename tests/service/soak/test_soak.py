"""A soak in virtual time: the same parts as in real time, with another clock."""

import asyncio
from typing import Any

import pytest

from kubestow import collector
from kubestow.apiserver.http.server import ApiServer
from kubestow.clock import SystemClock
from kubestow.service.soak import soak
from kubestow.service.soak.report import SoakReport
from kubestow.service.soak.soak import Soak
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time


@pytest.fixture(autouse=True)
def unchanged_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """The soak sets the collector of its process, which is that of all tests here."""
    monkeypatch.setattr(collector, "settle", lambda: None)


def soaked(seconds: float) -> SoakReport:
    async def main() -> SoakReport:
        clock = VirtualClock(asyncio.get_running_loop())
        return await Soak(clock, nodes=8, pods_per_s=20, over_http=False).run(seconds)

    return run_in_virtual_time(main())


@pytest.mark.slow
def test_the_servers_of_a_soak_need_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens: list[str] = []

    class Server(ApiServer):
        def __init__(self, *parts: Any, token: str = "") -> None:
            super().__init__(*parts, token=token)
            tokens.append(token)

    monkeypatch.setattr(soak, "ApiServer", Server)

    async def main() -> SoakReport:
        return await Soak(SystemClock(), nodes=4, pods_per_s=20, over_http=True).run(2)

    report = asyncio.run(main())
    assert report.bound > 0
    assert len(tokens) == 2
    assert min(map(len, tokens)) >= 24


@pytest.mark.slow
def test_pods_are_bound_while_everything_changes() -> None:
    report = soaked(20)
    assert 380 <= report.created <= 400
    assert report.bound > 0.9 * report.created
    assert report.latency.count == report.bound
    assert report.evicted > 0
    # The cluster does not grow: 8 nodes with room for 20 pods each, and 50 that wait.
    sizes = {name: kept.size for name, kept in report.kept[-1].containers.items()}
    assert sizes["cache.cache.Cache._pods"] <= 160
    # Pods of other tests may have classes, too.
    before = report.kept[0].containers["api.pod_info._CLASSES"].size
    assert sizes["api.pod_info._CLASSES"] < before + 300
    assert sizes["plugins.volume_binding.free_volumes.VolumesByClass._classes"] < 60
    for kept in report.kept:
        for name, container in kept.containers.items():
            assert container.limit is None or container.size <= container.limit, name
    assert report.lease_lateness.count >= 8
    assert report.lease_lateness.max_ms < 1000
    assert [sample.created for sample in report.samples] == sorted(
        sample.created for sample in report.samples
    )
    assert 20 <= len(report.samples) <= 22
    assert sum(sample.latency.count for sample in report.samples) <= report.bound
    # Far too short to judge anything.
    assert not report.is_judged
    assert not report.is_growing
