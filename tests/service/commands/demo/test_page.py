"""`kubestow demo` and `kubestow replay --page` as processes: what they print, and how they end."""

import http.client
import json
import os
import pty
import re
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import kubestow
from kubestow.recording.file import RecordingWriter
from kubestow.recording.format import Header
from kubestow.service.cli import app

pytestmark = pytest.mark.slow

SOURCES = str(Path(kubestow.__file__).parents[1])
TIMEOUT_S = 300


class Command:
    """A process in a terminal, once it has printed the address of its page."""

    def __init__(self, *arguments: str) -> None:
        self._main, terminal = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kubestow", *arguments],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, "PYTHONPATH": SOURCES, "COLUMNS": "200"},
        )
        os.close(terminal)
        self.output = ""
        found = self.wait_for(r"http://127\.0\.0\.1:(\d+)/page/\?token=([\w-]+)")
        self.port, self.token = int(found[1]), found[2]

    def wait_for(self, pattern: str) -> re.Match[str]:
        while (found := re.search(pattern, self.output)) is None:
            self.output += os.read(self._main, 4096).decode(errors="replace")
        return found

    def ask(self, path: str, body: object = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        method = "GET" if body is None else "POST"
        data = None if body is None else json.dumps(body)
        connection.request(method, f"/page/{path}", body=data, headers=headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        assert response.status == 200, answer
        return answer

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=TIMEOUT_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._main)


def test_in_a_terminal_the_demo_serves_its_page_until_it_is_interrupted(tmp_path: Path):
    saved = tmp_path / "saved.json"
    with closing(Command("demo", "--save", str(saved))) as demo:
        state = demo.ask("state")
        assert state["mode"] == "demo"
        assert len(state["nodes"]["name"]) == 10
        assert state["clock"]["canChange"]
        demo.ask("actions/pause", {})
        paused = demo.ask("state")["clock"]
        assert paused["paused"]
        demo.ask("actions/add-nodes", {"shape": "cpu=64,memory=256Gi", "count": 1})
        assert "node-9" in demo.ask("state")["nodes"]["name"]
        assert demo.ask("state")["clock"]["time"] - paused["time"] < 1000
        demo.ask("actions/speed", {"factor": 100})
        assert demo.ask("state")["clock"]["speed"] == 100
        assert demo.interrupt() == 128 + signal.SIGINT
        demo.wait_for("Saved .* objects")
    assert json.loads(saved.read_text())["kind"] == "List"


@pytest.mark.parametrize(
    "arguments",
    [["--page", "--nodes", "2", "--speed", "0"], ["--serve", "--nodes", "2"]],
    ids=["paused", "server"],
)
def test_it_ends_after_a_time(arguments: list[str]):
    result = CliRunner().invoke(app, ["demo", *arguments, "--for", "0.1"])
    assert result.exit_code == 0
    assert "An embedded cluster of 2 nodes" in result.output
    assert "The page: http://127.0.0.1:" in result.output


def test_a_recording_is_shown_attempt_by_attempt(tmp_path: Path):
    recording = tmp_path / "run.rec"
    manifests = tmp_path / "cluster.yaml"
    manifests.write_text(
        "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n"
        "status: {capacity: {cpu: '2', pods: '10'}}\n"
        + "".join(
            f"---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p{number}}}\nspec: {{containers: "
            "[{name: c, image: i, resources: {requests: {cpu: '1'}}}]}\n"
            for number in range(4)
        )
    )
    arguments = ["simulate", "-f", str(manifests), "--record", str(recording)]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    with closing(Command("replay", str(recording), "--page")) as replay:
        replay.wait_for("4 decisions in .* are on the page, 0 differ")
        state = replay.ask("state")
        assert state["mode"] == "recording"
        assert state["actions"] == ["pause", "resume", "speed"]
        for attempt, placed in ((1, 1), (2, 2), (3, 2), (4, 2)):
            then = replay.ask(f"state?attempt={attempt}")
            assert len([node for node in then["pods"]["node"] if node >= 0]) == placed
        assert replay.interrupt() == 128 + signal.SIGINT


def test_a_recording_of_another_scheduler_has_nothing_to_show(tmp_path: Path):
    recording = tmp_path / "other.rec"
    header = Header(program="", origin="record", started_ns=0, config="", gates={}, chance="{}")
    RecordingWriter(recording, header).close()
    result = CliRunner().invoke(app, ["replay", str(recording), "--page"])
    assert "recorded from another scheduler" in str(result.exception)
    result = CliRunner().invoke(app, ["replay", str(recording), "--open"])
    assert "--open and --page-port need --page" in str(result.exception)
