"""`kubestow run` as a process of its own, against an API server over HTTPS.

Nothing sleeps: the tests wait for lines of the log and for changes in the cluster, with a limit.
"""

import asyncio
import json
import re
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from kubestow import __version__
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.http.server import ApiServer
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cluster.resources import PODS
from kubestow.config.feature_gates import FeatureGates
from kubestow.editions import edition_named
from kubestow.recording.file import RecordingReader
from kubestow.service.cli import app
from tools.free_port import free_port
from tools.https_cluster import TOKEN
from tools.https_cluster import HttpsCluster as Cluster
from tools.scheduler_process import (
    ask_scheduler,
    running_scheduler,
    start_scheduler,
)

pytestmark = pytest.mark.slow

LIMIT_S = 300


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(LIMIT_S):
            await main()

    asyncio.run(limited())


def node(name: str, cpu: str = "4") -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }


def pod(name: str, cpu: str = "100m") -> JsonObject:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container]},
    }


def is_bound(pod: Pod) -> bool:
    return bool(pod.spec.node_name)


def reviews(cluster: Cluster) -> tuple[str, ...]:
    return (
        f"--authentication-kubeconfig={cluster.kubeconfig}",
        f"--authorization-kubeconfig={cluster.kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port()}",
    )


# --- a life ---


def test_modules_of_evidence_are_loaded_when_a_pod_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A line for each module, beside those of the log.
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    evidence = r"import time:.*\bkubestow\.explain\.evidence\b"

    async def main() -> None:
        async with (
            Cluster(tmp_path).serving() as cluster,
            cluster.scheduler(*reviews(cluster), "-v=2") as scheduler,
        ):
            cluster.store.load([node("n1"), pod("huge", cpu="100")])
            await scheduler.wait_for_line(r'"Unable to schedule pod; .* pod="default/huge"')
            assert re.search(r"import time:.*\bkubestow\.explain\b", scheduler.log)
            assert not re.search(evidence, scheduler.log)
            path = "/explain?namespace=default&pod=huge"
            status, text = await ask_scheduler(await scheduler.address(), path, token=TOKEN)
            assert (status, "needs 100 cpu, 4 of 4 free" in text) == (200, True)
            await scheduler.wait_for_line(evidence)

    run(main)


def test_it_schedules_serves_and_ends_in_order(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            Cluster(tmp_path).serving() as cluster,
            cluster.scheduler(*reviews(cluster), "-v=2") as scheduler,
        ):
            cluster.store.load([node("n1"), pod("a"), pod("huge", cpu="100")])
            bound = await cluster.wait_for_pod("a", is_bound)
            assert bound.spec.node_name == "n1"
            await cluster.wait_for_pod("huge", lambda pod: bool(pod.status.conditions))
            await scheduler.wait_for_line(
                r'"Successfully bound pod to node" pod="default/a" node="n1" '
                r"evaluatedNodes=1 feasibleNodes=1"
            )
            await scheduler.wait_for_line(
                r'"Unable to schedule pod; no fit; waiting" pod="default/huge" '
                r'err="0/1 nodes are available: 1 Insufficient cpu\.'
            )
            address = await scheduler.address()
            assert await ask_scheduler(address, "/healthz") == (200, "ok")
            assert await ask_scheduler(address, "/readyz") == (200, "ok")
            assert (await ask_scheduler(address, "/metrics", token="wrong"))[0] == 401
            status, text = await ask_scheduler(address, "/metrics", token=TOKEN)
            assert status == 200
            check_metrics(text)
            _, text = await ask_scheduler(address, "/metrics/resources", token=TOKEN)
            assert 'pod="huge",priority="0",resource="cpu"' in text
            _, text = await ask_scheduler(address, "/configz", token=TOKEN)
            assert json.loads(text)["componentconfig"]["leaderElection"]["leaderElect"] is True
            await check_explanation(cluster, address)
            assert await cluster.holder()
            assert await scheduler.end() == 0
            assert await cluster.holder() == ""
            assert '"Requested to terminate, exiting"' in scheduler.log
            assert "[graceful-termination] secure server is exiting" in scheduler.log

    run(main)


async def check_explanation(cluster: Cluster, address: str) -> None:
    """The pod that fits nowhere, from the attempt that the scheduler keeps."""
    port = address.rpartition(":")[2]
    arguments = ["explain", "huge", "-o", "json", "--kubeconfig", str(cluster.kubeconfig)]
    arguments += ["--from", f"https://127.0.0.1:{port}", "--insecure-skip-tls-verify"]
    result = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    found = json.loads(result.stdout)
    assert found["outcome"] == "Unschedulable"
    assert found["reasons"][0]["reasonCode"] == "InsufficientCPU"
    assert found["attempt"]["place"] == "unschedulable"
    assert found["attempt"]["nextTry"] > found["attempt"]["at"]


def check_metrics(text: str) -> None:
    """One bound pod and one that fits nowhere."""
    values = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }

    def value(metric: str, /, **labels: str) -> float:
        return values[metric, frozenset(labels.items())]

    profile = "default-scheduler"
    attempts = "scheduler_schedule_attempts_total"
    assert value(attempts, result="scheduled", profile=profile) == 1
    assert value(attempts, result="unschedulable", profile=profile) >= 1
    assert value("scheduler_pending_pods", queue="unschedulable") == 1
    assert value("scheduler_unschedulable_pods", plugin="NodeResourcesFit", profile=profile) == 1
    assert value("scheduler_cache_size", type="nodes") == 1
    assert value("scheduler_pod_scheduling_sli_duration_seconds_count", attempts="1") == 1
    assert value("leader_election_master_status", name="kube-scheduler") == 1
    assert any(name == "rest_client_requests_total" for name, _ in values)
    assert any(name == "process_resident_memory_bytes" for name, _ in values)


def test_deep_and_invalid_pods_do_not_stop_the_others(tmp_path: Path) -> None:
    levels = 9_995  # what a real API server stores
    fields = msgspec.Raw(b'{"f:a":' * levels + b"{}" + b"}" * levels)
    deep, odd = pod("deep"), pod("odd")
    deep["metadata"]["managedFields"] = [{"manager": "m", "fieldsV1": fields}]

    async def main() -> None:
        async with Cluster(tmp_path).serving() as cluster:
            cluster.store.load([node("n1"), deep, odd, pod("canary-1")])
            # Past validation: the typed object is what the server had before. Pods of one template
            # share parts of their documents, so this one gets a spec of its own.
            stored = cluster.store.get(PODS, "default", "odd")
            stored.document["spec"] = {**stored.document["spec"], "priority": "high"}
            async with cluster.scheduler(*reviews(cluster)) as scheduler:
                for name in ("deep", "canary-1"):
                    await cluster.wait_for_pod(name, is_bound)
                cluster.store.load([pod("canary-2")])
                await cluster.wait_for_pod("canary-2", is_bound)
                line = await scheduler.wait_for_line("cannot decode Pod")
                assert "spec.priority is" in line.string
                _, text = await ask_scheduler(await scheduler.address(), "/metrics", token=TOKEN)
                assert 'kubestow_undecodable_objects_total{kind="Pod"} 1' in text
                assert await scheduler.end() == 0

    run(main)


def test_a_second_instance_takes_over(tmp_path: Path) -> None:
    async def main() -> None:
        quick = (
            "--secure-port=0",
            "--leader-elect-lease-duration=6s",
            "--leader-elect-renew-deadline=5s",
            "--leader-elect-retry-period=500ms",
        )
        async with (
            Cluster(tmp_path).serving() as cluster,
            cluster.scheduler(*quick) as first,
        ):
            await first.wait_for_line("Successfully acquired lease")
            async with cluster.scheduler(*quick) as second:
                await second.wait_for_line("Attempting to acquire leader lease")
                cluster.store.load([node("n1"), pod("a")])
                await cluster.wait_for_pod("a", is_bound)
                await first.end(signal.SIGKILL)
                cluster.store.load([pod("b")])
                await cluster.wait_for_pod("b", is_bound)
                assert "Successfully acquired lease" in second.log
                assert await second.end(signal.SIGINT) == 0

    run(main)


def test_without_election_the_end_is_an_error_as_upstream(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            Cluster(tmp_path).serving() as cluster,
            cluster.scheduler("--leader-elect=false", "--secure-port=0") as scheduler,
        ):
            cluster.store.load([node("n1"), pod("a")])
            await cluster.wait_for_pod("a", is_bound)
            assert await scheduler.end() == 1
            assert '"command failed" err="finished without leader elect"' in scheduler.log
            # The version is that of the server's edition, so its edition is told before.
            edition, start = scheduler.log.splitlines()[:2]
            assert '"Scheduling as the server does" server="v1.36.0+kubestow.' in edition
            assert edition.endswith(' compatibility="v1.36"')
            assert f'Scheduler" version="v1.36.4" kubestow="{__version__}"' in start

    run(main)


def test_sigusr2_shows_what_is_inside(tmp_path: Path) -> None:
    async def main() -> None:
        flags = ("--leader-elect=false", "--secure-port=0")
        async with (
            Cluster(tmp_path).serving() as cluster,
            cluster.scheduler(*flags) as scheduler,
        ):
            cluster.store.load([node("n1"), pod("a"), pod("huge", cpu="100")])
            await cluster.wait_for_pod("a", is_bound)
            await cluster.wait_for_pod("huge", lambda pod: bool(pod.status.conditions))
            scheduler.process.send_signal(signal.SIGUSR2)
            await scheduler.wait_for_line("Dump of cached NodeInfo")
            await scheduler.wait_for_line(
                r'"Dump of scheduling queue" summary="activeQ:0; backoffQ:0; unschedulablePods:1"'
            )
            assert "Allocatable Resources:&{MilliCPU:4000 Memory:8589934592" in scheduler.log
            assert "Cache mismatch" not in scheduler.log

    run(main)


def test_logs_as_json(tmp_path: Path) -> None:
    async def main() -> None:
        flags = ("--leader-elect=false", "--secure-port=0", "--logging-format=json", "-v=2")
        async with (
            Cluster(tmp_path).serving() as cluster,
            cluster.scheduler(*flags) as scheduler,
        ):
            cluster.store.load([node("n1"), pod("a")])
            await scheduler.wait_for_line("Successfully bound pod to node")
            lines = [json.loads(line) for line in scheduler.lines]
            (bound,) = (line for line in lines if line["msg"] == "Successfully bound pod to node")
            assert bound["pod"] == {"name": "a", "namespace": "default"}
            assert bound["v"] == 2

    run(main)


# --- what cannot work ---


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        pytest.param(["--x"], "unknown flag: --x", id="flag"),
        pytest.param(["x"], '"kubestow run" does not take any arguments, got ["x"]', id="argument"),
        pytest.param(["--secure-port=x"], 'invalid argument "x" for "--secure-port"', id="value"),
        pytest.param(["--config=/nowhere"], "open /nowhere: no such file", id="no-file"),
        pytest.param([], "no configuration has been provided", id="2.1-6-no-cluster"),
        pytest.param(
            ["--feature-gates=Nonsense=true"], "unrecognized feature gate: Nonsense", id="gate"
        ),
        pytest.param(["--kubeconfig=/nowhere"], "/nowhere", id="no-kubeconfig"),
        pytest.param(
            ["--master=http://127.0.0.1:1", "--leader-elect-lease-duration=5s"],
            "couldn't create leader elector: leaseDuration must be greater than renewDeadline",
            id="election",
        ),
    ],
)
def test_errors_end_with_1_and_a_reason(flags: list[str], text: str) -> None:
    async def main() -> None:
        scheduler = await start_scheduler(*flags)
        assert await scheduler.exit_code() == 1
        error, hint = scheduler.log.splitlines()[-2:]
        assert error.startswith("kubestow: error: ")
        assert text in error
        assert hint == "run 'kubestow run --help' for its options"

    run(main)


def test_an_invalid_configuration_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "parallelism: 0\n"
    )

    async def main() -> None:
        scheduler = await start_scheduler(f"--config={path}")
        assert await scheduler.exit_code() == 1
        assert (
            "kubestow: error: parallelism: Invalid value: 0: should be an integer value "
            "greater than zero\n" in scheduler.log
        )

    run(main)


def test_help_and_version_go_to_standard_output() -> None:
    async def main() -> None:
        for flag, text in (
            ("--version", "Kubernetes v1.36.4\n"),
            ("--help", "--leader-elect-lease-duration DURATION"),
        ):
            scheduler = await start_scheduler(flag)
            assert scheduler.process.stdout is not None
            out = await scheduler.process.stdout.read()
            assert await scheduler.exit_code() == 0
            assert text in out.decode()

    run(main)


def test_the_configuration_can_be_written(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "written.yaml"
        path.write_text("replaced, as kube-scheduler does")
        flags = ("--master=http://127.0.0.1:1", "--secure-port=0", f"--write-config-to={path}")
        scheduler = await start_scheduler(*flags)
        assert await scheduler.exit_code() == 0
        assert f'"Wrote configuration" file="{path}"' in scheduler.log
        written = yaml.safe_load(path.read_text())
        assert written["kind"] == "KubeSchedulerConfiguration"
        assert written["profiles"][0]["schedulerName"] == "default-scheduler"

    run(main)


def test_secrets_of_the_configuration_are_not_logged(tmp_path: Path) -> None:
    config, path = tmp_path / "config.yaml", tmp_path / "written.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "extenders:\n- urlPrefix: http://me:hunter2@127.0.0.1:1\n  filterVerb: filter\n"
        "  tlsConfig: {insecure: true, keyData: aHVudGVyMg==}\n"
    )

    async def main() -> None:
        flags = (f"--config={config}", "--master=http://me:hunter2@127.0.0.1:1", "--secure-port=0")
        scheduler = await start_scheduler(*flags, f"--write-config-to={path}", "-v=6")
        assert await scheduler.exit_code() == 0
        assert '"Using component config" config=<\n\tapiVersion: ' in scheduler.log
        assert "FLAG: --master" in scheduler.log
        assert "--- REDACTED ---" in scheduler.log
        for secret in ("hunter2", "aHVudGVyMg"):
            assert secret not in scheduler.log
            # The file is for a scheduler.
            assert secret in path.read_text()
        assert path.stat().st_mode & 0o777 == 0o600

    run(main)


def test_an_existing_file_is_not_overwritten_by_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "mine"
    path.write_text("precious")

    async def main() -> None:
        flags = ("--master=http://127.0.0.1:1", "--secure-port=0", f"--record={path}")
        scheduler = await start_scheduler(*flags)
        assert await scheduler.exit_code() == 1
        assert f'--record: "{path}" exists and is not overwritten' in scheduler.log
        assert "Traceback" not in scheduler.log
        assert path.read_text() == "precious"

    run(main)


@pytest.mark.parametrize("version", ["v1.36", "v1.37"])
def test_a_server_that_comes_late_is_waited_for(tmp_path: Path, version: str) -> None:
    """Its version decides, whenever it comes; until then the process is healthy."""

    async def main() -> None:
        port = free_port()
        flags = (f"--master=http://127.0.0.1:{port}", "--leader-elect=false")
        own = ("--bind-address=127.0.0.1", f"--secure-port={free_port()}")
        async with running_scheduler(*flags, *own, f"--record={tmp_path}/run.rec") as scheduler:
            await scheduler.wait_for_line("Waiting for the version of the API server.*refused")
            assert (await ask_scheduler(await scheduler.address(), "/healthz"))[0] == 200
            cluster = Cluster(tmp_path)
            gates = FeatureGates({}, edition_named(version))
            cluster.store = MemoryCluster(cluster.clock, gates=gates)
            cluster.client = MemoryClient(cluster.store)
            cluster.server = ApiServer(cluster.store, cluster.clock)
            await cluster.server.start(port=port)
            cluster.store.load([node("n1"), pod("a")])
            await cluster.wait_for_pod("a", is_bound)
            await scheduler.wait_for_line(f'"Scheduling as the server.*compatibility="{version}"')
            assert await scheduler.end() == 1
            await cluster.server.close()
        assert RecordingReader(tmp_path / "run.rec").header.edition == version

    run(main)


def test_a_process_that_waits_for_the_server_ends_on_sigterm() -> None:
    async def main() -> None:
        flags = (f"--master=http://127.0.0.1:{free_port()}", "--secure-port=0")
        async with running_scheduler(*flags) as scheduler:
            await scheduler.wait_for_line("Starting Kubernetes Scheduler")
            assert await scheduler.end() == 0
            assert '"Requested to terminate, exiting"' in scheduler.log

    run(main)
