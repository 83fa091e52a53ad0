"""`kubestow record`: the version of the cluster is in the recording."""

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.service.commands.test_replay import run

from kubestow.apiserver.http.kubeconfig_file import KubeconfigFile, kubeconfig
from kubestow.apiserver.http.server import ApiServer
from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import SystemClock
from kubestow.cluster.self_signed import self_signed
from kubestow.config.feature_gates import FeatureGates
from kubestow.editions import edition_named
from kubestow.recording.file import RecordingReader

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


@contextmanager
def served(path: Path, version: str) -> Generator[None, None, None]:
    """A server of this version beside the test; the file says how to reach it."""
    started, ended = threading.Event(), threading.Event()

    async def serve() -> None:
        clock = SystemClock()
        cluster = MemoryCluster(clock, gates=FeatureGates({}, edition_named(version)))
        cluster.load([NODE])
        made = self_signed(now_ns=clock.now_ns())
        api = ApiServer(cluster, clock, token="secret")
        port = await api.start(tls=made.server_context())
        url = f"https://127.0.0.1:{port}"
        KubeconfigFile(path).add(kubeconfig(url=url, authority=made.authority, token="secret"))
        started.set()
        await asyncio.to_thread(ended.wait)
        await api.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert started.wait(300)
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("version", ["v1.36", "v1.37"])
def test_a_recording_remembers_the_version_of_its_server(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access, path = tmp_path / "kubeconfig", tmp_path / "cluster.rec"
    with served(access, version):
        arguments = ("record", str(path), "--kubeconfig", str(access), "--for", "300ms")
        assert run(monkeypatch, *arguments) == 0
    reader = RecordingReader(path)
    assert reader.header.edition == version
    assert [record for record in reader if getattr(record, "kind", "") == "Node"]
    assert run(monkeypatch, "replay", str(path)) == 0


def test_a_server_that_does_not_answer_is_said_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    access, path = tmp_path / "kubeconfig", tmp_path / "cluster.rec"
    with served(access, "v1.37"):
        pass
    assert run(monkeypatch, "record", str(path), "--kubeconfig", str(access)) == 2
    error = capsys.readouterr().err.splitlines()[0]
    assert "does not answer" in error
    assert "check the kubeconfig" in error
    assert not path.exists()
