"""Sources of measurements that hang, lie or flap, the embedded metrics.k8s.io, and Prometheus."""

import asyncio
import contextlib
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.apiserver.http.server import ApiServer
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cache.objects import ClusterObjects
from kubestow.clock import SystemClock
from kubestow.cluster.http.kubeconfig import ServerConfig
from kubestow.cluster.http.session import ApiSession
from kubestow.config.load_aware_args import LoadSource
from kubestow.errors import DecodeError, UnreachableError
from kubestow.service.measuring.metrics_api import MetricsApi, decoded
from kubestow.service.measuring.prometheus import PrometheusApi, found_in
from kubestow.service.measuring.reader import PART, MeasurementBatch, MeasurementReader
from kubestow.service.measuring.usage_file import UsageFile
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing import ManualClock, make_node, make_pod
from kubestow.usage.measurement import Amounts, Measurement
from kubestow.usage.store import UsageStore
from tools.free_port import free_port

SECOND = 10**9


class Scripted:
    """A source whose reads are given: batches, an exception, or "hang"."""

    name = "scripted"

    def __init__(self, *reads):
        self._reads = list(reads)

    async def read(self):
        what = self._reads.pop(0)
        if what == "hang":
            await asyncio.Event().wait()
        if isinstance(what, Exception):
            raise what
        for batch in what:
            yield batch


def make_reader(source, *names, timeout_s=30, clock=None):
    clock, objects, store = clock or ManualClock(1000), ClusterObjects(), UsageStore()
    objects.put(*map(make_node, names))

    def counts():
        known = [name for name in store.node_names() if objects.nodes.get(name) is not None]
        return len(known), 0, len(names) - len(known)

    reader = MeasurementReader(
        source, store, objects, clock, interval_s=1, timeout_s=timeout_s, counts=counts
    )
    return reader, store, objects


def node(name, cpu=100):
    return Measurement(1000 * SECOND, Amounts(cpu, 1 << 30), node=name)


def test_only_nodes_and_pods_that_exist_are_kept():
    strangers = [node(f"x{number}") for number in range(3000)]
    pods = [
        Measurement(1, Amounts(5, 5), namespace=namespace, pod="a") for namespace in ("ns", "other")
    ]
    source = Scripted([MeasurementBatch([node("n1"), node("n2", -1), *strangers, *pods], 7)])
    reader, store, objects = make_reader(source, "n1", "n2")
    objects.put(make_pod("a", namespace="ns", node="n1"))
    asyncio.run(reader.read_once())
    assert store.node_names() == ["n1"]
    assert store.statistics().pods == 1
    refused = {"unknown object": 3001, "negative": 1, "not readable": 7}
    assert store.statistics().refused == refused


def test_a_source_that_hangs_fails_or_flaps_never_ends_the_reader(caplog):
    caplog.set_level("INFO")
    reads = ("hang", UnreachableError("refused"), UnreachableError("refused"), ValueError("bug"))
    reader, store, _ = make_reader(Scripted(*reads, [MeasurementBatch([node("n1")])], "hang"), "n1")
    seen = []
    for _ in range(6):
        run_in_virtual_time(reader.read_once())
        seen.append(reader.condition.status)
    assert seen == ["False"] * 4 + ["True"] * 2
    assert reader.statistics()[:2] == (1, 5)
    assert store.node_names() == ["n1"]
    lines = [record.message for record in caplog.records]
    assert lines.count("Cannot read usage") == 4  # not twice for the same failure in a row
    assert lines.count("Load-aware placement") == 2
    assert reader.condition.reason == "Measured"


def test_other_work_goes_on_while_a_large_answer_is_added():
    names = [f"n{number}" for number in range(PART * 5)]
    reader, store, _ = make_reader(Scripted([MeasurementBatch([*map(node, names)])]), *names)
    turns = []

    async def work():
        reading = asyncio.create_task(reader.read_once())
        while not reading.done():
            turns.append(store.statistics().nodes)
            await asyncio.sleep(0)

    asyncio.run(work())
    assert sorted(set(turns)) == [PART * part for part in range(6)]


@pytest.mark.parametrize(
    "usage",
    [
        {"cpu": "-1", "memory": "1Ki"},
        {"cpu": "NaN", "memory": "1Ki"},
        {"cpu": "1", "memory": "1e400"},
    ],
)
def test_bad_quantities_are_refused(usage):
    item = {"metadata": {"name": "n1"}, "timestamp": "2026-01-31T12:00:00Z", "window": "10s"}
    batch = decoded(json.dumps({"items": [{**item, "usage": usage}]}).encode())
    store = UsageStore()
    store.add(batch.measurements)
    assert store.node_names() == []
    assert batch.bad_count + sum(store.statistics().refused.values()) == 1


def vector(*series):
    data = {"resultType": "vector", "result": list(series)}
    return json.dumps({"status": "success", "data": data}).encode()


def series(value, **labels):
    return {"metric": labels, "value": [1000, value]}


def test_series_of_prometheus_that_are_no_numbers_are_left_out():
    body = vector(
        series("0.25", node="n1"),
        series("9", node="n1"),
        series("NaN", node="n2"),
        series("+Inf", node="n3"),
        series("x", node="n4"),
        series("1", instance="n5"),
        # Finite, and in thousandths of a core it is not.
        series("1e306", node="n6"),
    )
    assert found_in(body, ("node",)) == ({("n1",): (1000 * SECOND, 0.25)}, 6)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b'{"status":"error","error":"bad query"}',
        b'{"status":"success","data":{"resultType":"matrix","result":[]}}',
        b'{"status":"success","data":{"resultType":"vector","result":[{"value":[1]}]}}',
    ],
)
def test_what_is_no_answer_is_an_error(body):
    with pytest.raises(DecodeError):
        found_in(body, ("node",))


@given(st.binary(max_size=80))
def test_any_answer_is_decoded_or_refused(body):
    for decode in (decoded, lambda body: found_in(body, ("node",))):
        with contextlib.suppress(DecodeError):
            decode(body)


def test_a_file_is_read_again_when_it_changes(tmp_path):
    path = tmp_path / "usage.csv"
    path.write_text("time,node,cpu,memory\n1000,n1,1,1\nbad,n1,1,1\n")
    source = UsageFile(path)

    async def read():
        return [batch async for batch in source.read()]

    (batch,) = asyncio.run(read())
    assert len(batch.measurements) == batch.bad_count == 1
    assert asyncio.run(read()) == []
    path.write_text("time,node,cpu,memory\n1000,n1,1,1\n")
    os.utime(path, ns=(1, 1))
    assert len(asyncio.run(read())) == 1


def test_the_embedded_server_serves_measurements():
    async def inside():
        clock = SystemClock()
        cluster = MemoryCluster(clock)
        server = ApiServer(cluster, clock)
        server.usage = UsageStore()
        now_ns = clock.now_ns()
        server.usage.add(
            [
                Measurement(now_ns, Amounts(250, 1 << 28), node="n1"),
                Measurement(now_ns, Amounts(70, 1 << 20), namespace="web", pod="a"),
            ]
        )
        port = await server.start()
        session = ApiSession(ServerConfig(server=f"http://127.0.0.1:{port}"), clock)
        reader, store, objects = make_reader(
            MetricsApi(session, lambda: ["web", "none"]), "n1", clock=clock
        )
        objects.put(make_pod("a", namespace="web", node="n1"))
        try:
            await reader.read_once()
        finally:
            session.close()
            await server.close()
        (slot,) = store.slots_of(["n1"])
        assert store.nodes.latest[:, slot].tolist() == [250, 1 << 28]
        assert abs(int(store.nodes.time_ns[slot]) - now_ns) < 10**7
        assert store.pod("web", "a").cpu_milli == 70
        assert reader.condition.status == "True"

    asyncio.run(inside())


# --- a real Prometheus ---


async def serve_metrics(values):
    """A scrape target with what nodes use, as cAdvisor reports it."""

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        lines = [
            f'{name}{{id="/",node="{node}"}} {value}\n' for (name, node), value in values.items()
        ]
        body = "".join(lines).encode()
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", 0)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="there is no prometheus here")
def test_a_real_prometheus_is_read_and_choices_follow_it(tmp_path: Path):
    values = {
        ("container_cpu_usage_seconds_total", "n1"): 0.0,
        ("container_cpu_usage_seconds_total", "n2"): 0.0,
        ("container_memory_working_set_bytes", "n1"): 2.0**30,
        ("container_memory_working_set_bytes", "n2"): 2.0**30,
    }
    clock = SystemClock()

    async def inside():
        target = await serve_metrics(values)
        address = f"127.0.0.1:{target.sockets[0].getsockname()[1]}"
        port = free_port()
        jobs = [
            {
                "job_name": "nodes",
                "scrape_interval": "1s",
                "scrape_timeout": "1s",
                "static_configs": [{"targets": [address]}],
            }
        ]
        (tmp_path / "prometheus.yml").write_text(json.dumps({"scrape_configs": jobs}))
        process = await asyncio.create_subprocess_exec(
            "prometheus",
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        source = LoadSource(
            type="Prometheus",
            address=f"http://127.0.0.1:{port}",
            cpu_query='sum by (node) (rate(container_cpu_usage_seconds_total{id="/"}[4s]))',
        )
        session = ApiSession(ServerConfig(server=source.address), clock, timeout_s=10)
        api = PrometheusApi(session, source)
        reader, store, _ = make_reader(api, "n1", "n2", timeout_s=10, clock=clock)
        try:
            async with asyncio.timeout(300):
                for busy, idle in (("n1", "n2"), ("n2", "n1")):
                    await measured_as(busy, idle, reader, store)
        finally:
            session.close()
            process.terminate()
            await process.wait()
            target.close()
            await target.wait_closed()

    async def measured_as(busy, idle, reader, store):
        """Let one node use two cores, until Prometheus reports that."""
        while True:
            values["container_cpu_usage_seconds_total", busy] += 1.0
            await asyncio.sleep(0.5)
            await reader.read_once()
            slots = store.slots_of([busy, idle])
            if (slots >= 0).all():
                used = store.nodes.latest[0, slots]
                if used[0] > 1500 and used[1] == 0:
                    assert np.all(store.nodes.latest[1, slots] == 1 << 30)
                    return

    asyncio.run(inside())
