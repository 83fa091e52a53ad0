"""No file is read beyond the limit, and none is overwritten by accident."""

import gzip
import io
import sys
import zlib
from pathlib import Path

import pytest

from kubestow.files.reading import VARIABLE
from kubestow.service.cli import main

NODE = "{apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 4}}}"
INPUT = ["-f", "nothing-here.yaml"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "")  # what a test sets is undone


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["kubestow", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


# --- what is read ---


def bomb() -> bytes:
    stream = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(stream.compress(b"#" * (1 << 20)) for _ in range(17)) + stream.flush()


@pytest.mark.parametrize(
    "command",
    [
        ["simulate", "-f"],
        ["simulate", "--scenario", "scenario.yaml", "-f"],
        ["explain", "pod", "-f"],
        ["capacity", "--headroom", "-f"],
        ["compare", "--variant", "v1.36", "-f"],
        ["conformance"],
        ["demo", "--serve", "--for", "0", "--load"],
    ],
    ids=lambda command: command[0],
)
def test_a_small_file_that_unpacks_to_much_is_refused(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("scenario.yaml").write_text("name: a\nuntil: 1m\n")
    Path("bomb.json.gz").write_bytes(bomb())
    assert run(monkeypatch, *command, "bomb.json.gz") == 2
    error = capsys.readouterr().err
    assert "bomb.json.gz has 16.95 KiB" in error
    assert "unpacks to more than the limit of 16 MiB; if you trust it, --max-input" in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    "command",
    [
        ["simulate", "-f", "large"],
        ["simulate", "-f", "-"],
        ["simulate", "--scenario", "large"],
        ["simulate", "--config", "large", "-f", "small.yaml"],
        ["simulate", "--trace", "csv", "--nodes", "large", "--pods", "large"],
        ["explain", "pod", "-f", "large"],
        ["capacity", "--headroom", "-f", "large"],
        ["compare", "--variant", "a=large,v1.36", "-f", "small.yaml"],
        ["conformance", "large"],
    ],
    ids=" ".join,
)
def test_a_large_file_is_refused(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("small.yaml").write_text(NODE)
    Path("large").write_bytes(b"#" * 3000)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"#" * 3000)))
    assert run(monkeypatch, command[0], "--max-input", "2k", *command[1:]) == 2
    output = capsys.readouterr()
    assert "the limit of 1.953 KiB; --max-input sets it" in output.err + output.out


def test_a_larger_limit_is_possible(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.yaml.gz").write_bytes(gzip.compress(NODE.encode() + b"\n" + b"#" * (17 << 20)))
    assert run(monkeypatch, "simulate", "-f", "a.yaml.gz") == 2
    assert run(monkeypatch, "simulate", "-f", "a.yaml.gz", "--max-input", "18Mi") == 0
    capsys.readouterr()
    assert run(monkeypatch, "simulate", "-f", "a.yaml.gz", "--max-input", "much") == 2
    assert '--max-input is "much", expected a size' in capsys.readouterr().err


# --- what is written ---


@pytest.mark.parametrize(
    "command",
    [
        ["simulate", *INPUT, "--record", "mine.json"],
        ["simulate", *INPUT, "--report", "mine.json"],
        ["simulate", *INPUT, "--report", "data.csv"],
        ["simulate", *INPUT, "--save", "mine.json"],
        ["simulate", "--scenario", "nothing-here.yaml", "--record", "mine.json"],
        ["simulate", "--scenario", "nothing-here.yaml", "--report", "mine.json"],
        ["simulate", "--trace", "csv", "--pods", "nothing-here.csv", "--record", "mine.json"],
        ["simulate", "--trace", "csv", "--pods", "nothing-here.csv", "--report", "link.json"],
        ["simulate", "--save-template", "mine.json"],
        ["simulate", *INPUT, "--record", "link.json"],
        ["simulate", *INPUT, "--record", "dangling.json"],
        ["simulate", *INPUT, "--save", "link.json"],
        ["capacity", *INPUT, "--headroom", "--save", "mine.json"],
        ["compare", *INPUT, "--variant", "v1.36", "--save", "mine.json"],
        ["compare", *INPUT, "--variant", "v1.36", "--report", "mine.html"],
        ["simulate", *INPUT, "--report", "mine.html"],
        ["demo", "--story", "--record", "mine.json"],
        ["demo", "--serve", "--record", "mine.json"],
        ["demo", "--serve", "--save", "mine.json", "--load", "nothing-here.yaml"],
        ["demo", "--page", "--save", "link.json", "--load", "nothing-here.yaml"],
        ["record", "mine.json", "--kubeconfig", "nothing-here.yaml"],
        ["bench", "--profile", "mine.json", "--workload", "no such"],
    ],
    ids=" ".join,
)
def test_a_file_is_not_overwritten_and_that_is_said_before_the_work(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    others = [Path(name) for name in ("mine.json", "mine.html", "data.pods.csv", "target")]
    for path in others:
        path.write_text("precious")
    Path("link.json").symlink_to("target")
    Path("dangling.json").symlink_to("nothing")
    assert run(monkeypatch, *command) == 2
    line, *_ = capsys.readouterr().err.splitlines()
    assert "is not overwritten; name another file, or add --force" in line
    assert [path.read_text() for path in others] == ["precious"] * 4
    assert not Path("nothing").exists()


def test_a_folder_with_files_is_not_written_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("full").mkdir()
    Path("full", "run.json").write_text("precious")
    pytest.importorskip("altair")
    for option in ("--report", "--save"):
        assert run(monkeypatch, "simulate", *INPUT, option, "full") == 2
        assert "--force" in capsys.readouterr().err


def test_with_force_files_are_replaced_and_links_too(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("small.yaml").write_text(NODE)
    Path("target").write_text("precious")
    files = {"--record": Path("a"), "--report": Path("b.json"), "--save": Path("c.json")}
    for option, path in files.items():
        path.symlink_to("target")
        arguments = ["simulate", "-f", "small.yaml", option, str(path), "--force"]
        assert run(monkeypatch, *arguments) == 0
        assert not path.is_symlink()
        assert path.stat().st_mode & 0o777 == 0o600
    assert Path("target").read_text() == "precious"
