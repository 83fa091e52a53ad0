"""Wrong input on every command: one line that says what is wrong, and how to get help."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubestow.service.cli import COMMANDS, main, prepare_streams

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: a}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "110"}}
"""
WORKLOAD = """\
apiVersion: v1
kind: Service
metadata: {name: web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %s
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {%s containers: [{name: web, image: web}]}
"""
LONG = "9" * 5000
FILES = {
    "cluster.yaml": CLUSTER,
    "replicas.yaml": WORKLOAD % ('"3"', ""),
    "field.yaml": WORKLOAD % ("1", "nodeSelectr: {disk: ssd},"),
    "class.yaml": WORKLOAD % ("1", "priorityClassName: nope,"),
    "old.yaml": "apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: web}\n"
    "spec: {template: {spec: {containers: []}}}\n",
    "empty.yaml": "---\n",
    "text.yaml": "just a text\n",
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)


def run(
    command_line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/kubestow", *command_line.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    output, errors = capsys.readouterr()
    code = ended.value.code
    return code if isinstance(code, int) else 0, output, errors


SIMULATE = "simulate -f cluster.yaml"
TRACE = "simulate --trace csv --pods p"
DAY = Path(__file__).parents[2] / "examples/day.yaml"
SCENARIO = f"simulate --scenario {DAY}"


@pytest.mark.parametrize(
    ("command_line", "code", "error"),
    [
        # Typer's own checks, for any command.
        ("nope", 2, 'no command "nope"'),
        ("simlate", 2, 'no command "simlate" (simulate?)'),
        ("explan", 2, 'no command "explan" (explain, replay?)'),
        ("--nope", 2, "no option --nope"),
        ("simulate --nope", 2, "no option --nope"),
        ("simulate --out json", 2, "no option --out (--output?)"),
        ("simulate cluster.yaml", 2, 'unexpected argument "cluster.yaml"'),
        ("simulate --limit", 2, "--limit needs a value"),
        ("simulate --limit x", 2, '--limit is "x", expected a number'),
        ("simulate --limit nan", 2, '--limit is "nan", expected a number'),
        ("compare --limit inf", 2, '--limit is "inf", expected a number'),
        ("rebalance --start-time nan", 2, '--start-time is "nan", expected a number'),
        ("demo --speed nan", 2, '--speed is "nan", expected a number'),
        (f"compare --seeds {LONG[:30]}", 2, f'--seeds is "{LONG[:30]}", expected 1 to 100000'),
        (f"bench --nodes {LONG[:30]}", 2, f'--nodes is "{LONG[:30]}", expected 1 to 1000000'),
        ("plugin", 2, "missing argument 'check'"),
        ("plugin check acme", 2, 'there is no plugin "acme"; name its class as module:Class'),
        ("simulate --limit -1", 2, '--limit is "-1", expected 0 or more'),
        ("simulate -o x", 2, '--output is "x", expected one of table, wide, name, json, yaml'),
        (
            "simulate --percentage-of-nodes-to-score 101",
            2,
            '--percentage-of-nodes-to-score is "101", expected 0 to 100',
        ),
        ("simulate --strict=3", 2, "--strict takes no value"),
        ("demo --speed fast", 2, '--speed is "fast", expected a number'),
        ("demo --nodes 1.5", 2, '--nodes is "1.5", expected a whole number'),
        ("bench --nodes 5 day", 2, "--nodes: belongs after day"),
        ("bench dya", 2, 'no command "dya" (day?)'),
        ("bench --repeat 0", 2, '--repeat is "0", expected 1 or more'),
        ("conformance --show x", 2, '--show is "x", expected a whole number'),
        ("conformance -o wide", 2, '--output is "wide", expected one of table, json, yaml'),
        (
            "explain a --compatibility v1.20",
            2,
            '--compatibility is "v1.20", expected one of v1.37, v1.36',
        ),
        (
            "capacity --compatibility v1.17",
            2,
            '--compatibility is "v1.17", expected one of v1.37, v1.36',
        ),
        (
            "rebalance --compatibility v1.9",
            2,
            '--compatibility is "v1.9", expected one of v1.37, v1.36',
        ),
        (
            "replay x --compatibility v1.9",
            2,
            '--compatibility is "v1.9", expected one of v1.37, v1.36',
        ),
        (f"{SIMULATE} --until 1h", 2, "--until is for --scenario; one placement has --limit"),
        (f"{SIMULATE} --seed 1", 2, "--seed is for --scenario and --trace"),
        (f"{TRACE} --nodes n --until 1h", 2, "--until is for --scenario; a trace is cut with"),
        (
            f"{TRACE} --nodes n --drain a",
            2,
            "--save, --strict, --kubeconfig, --context and changes",
        ),
        (f"{TRACE} --nodes n --save x", 2, "--save, --strict, --kubeconfig, --context and changes"),
        (f"{SCENARIO} --nodes n", 2, "--nodes, --pods and --usage are files of a trace"),
        (f"{SCENARIO} --strict", 2, "--save, --strict, --kubeconfig, --context and changes"),
        (
            f"compare --variant a --scenario {DAY} --reschedule",
            2,
            "--save, --strict, --kubeconfig, --context and changes",
        ),
        (f"compare --variant a --scenario {DAY} --limit 3", 2, "--limit is for one placement"),
        ("explain a --from 10.0.0.7:10259", 2, '--from is "10.0.0.7:10259", expected an address'),
        ("explain --all --from http://a", 2, '--from is "http://a", expected an address such as h'),
        (
            "test --init a.placement.yaml cluster.yaml",
            2,
            "--init runs no tests: leave out paths, -",
        ),
        ("version -o x", 2, '--output is "x", expected one of table, json, yaml'),
        ("version now", 2, 'unexpected argument "now"'),
        # What commands check themselves.
        ("simulate", 2, "nothing to simulate: name files with -f, for example -f cluster.yaml"),
        ("simulate -f nope.yaml", 2, 'cannot read "nope.yaml": No such file or directory'),
        ("simulate -f empty.yaml", 2, "no objects in empty.yaml"),
        (
            "simulate -f text.yaml",
            2,
            "text.yaml#1: found a text, expected a Kubernetes object",
        ),
        (
            "simulate -f https://example.com/a.yaml?x=1&y=2",
            2,
            "-f does not read addresses; run: curl -sSL 'https://example.com/a.yaml?x=1&y=2' | "
            "kubestow simulate -f -",
        ),
        (
            f"{SIMULATE} -f replicas.yaml --strict",
            2,
            'the cluster cannot be set up: replicas.yaml#2: cannot decode Deployment "web": '
            'spec.replicas is "3": expected a whole number',
        ),
        (
            f"{SIMULATE} -f field.yaml --strict",
            2,
            'field.yaml#2: unknown field "spec.template.spec.nodeSelectr" (did you mean '
            '"nodeSelector"?)',
        ),
        (
            f"{SIMULATE} -f class.yaml --strict",
            2,
            'the cluster cannot be set up: class.yaml#2: pods "web-',
        ),
        (
            f"{SIMULATE} -f old.yaml --strict",
            2,
            'the cluster cannot be set up: old.yaml#1: no matches for kind "Deployment" in version '
            '"extensions/v1beta1"',
        ),
        (
            f"{SIMULATE} --config nope.yaml",
            2,
            'configuration "nope.yaml": open nope.yaml: no such file or directory',
        ),
        (f"{SIMULATE} --policy nope.yaml", 2, 'cannot read "nope.yaml": No such file or directory'),
        ("conformance nowhere", 2, 'cannot read recording "nowhere"'),
        ("conformance --only nope", 2, '--only: there is no part "nope"; the parts are '),
        (
            "bench --profile nowhere/file",
            2,
            '--profile: cannot write "nowhere/file": there is no folder "nowhere"',
        ),
        ("bench --workload (", 2, '--workload: "(" is no regular expression: '),
        ("bench -o x", 2, '--output is "x", expected one of table, json, perf-json'),
        (
            "print-default-config --config nope.yaml",
            2,
            'configuration "nope.yaml": open nope.yaml: no such file or directory',
        ),
        (f"simulate -f {LONG}", 2, f'cannot read "{LONG}": File name too long'),
        (f"conformance {LONG}", 2, f'cannot read recording "{LONG}": File name too long'),
        (f"simulate -f {LONG * 40}", 2, 'cannot read "99999'),
        ("run --nope", 1, "unknown flag: --nope"),
        ("run nope", 1, '"kubestow run" does not take any arguments, got ["nope"]'),
        ("run --secure-port x", 1, 'invalid argument "x" for "--secure-port" flag: '),
        ("run --config nope.yaml", 1, "open nope.yaml: no such file or directory"),
    ],
)
def test_wrong_input(
    command_line: str,
    code: int,
    error: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ended, output, errors = run(command_line, monkeypatch, capsys)
    command = command_line.split()[0]
    program = f"kubestow {command}" if command in COMMANDS else "kubestow"
    first, *more = errors.splitlines()
    assert (ended, output) == (code, "")
    assert first.startswith(f"kubestow: error: {error}")
    assert more == [f"run '{program} --help' for its options"]
    assert "Value error" not in errors
    assert len(first) < 11_000


def test_an_error_of_a_subcommand_names_its_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, _, errors = run("bench day --gangs", monkeypatch, capsys)
    error, more = errors.splitlines()
    assert error == "kubestow: error: no option --gangs"
    assert more == "run 'kubestow bench day --help' for its options"


@pytest.mark.parametrize("arguments", ["", "--help", "-h"])
def test_the_help_of_the_program_imports_no_command(
    arguments: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    imported: list[str] = []
    monkeypatch.setattr("kubestow.service.cli.import_module", imported.append)
    code, output, errors = run(arguments, monkeypatch, capsys)
    assert (code, errors, imported) == (0, "", [])
    assert output.startswith("Usage: kubestow [OPTIONS] COMMAND [ARGS]...\n")
    for command, summary in COMMANDS.items():
        assert [command, *summary.split()] in [line.split() for line in output.splitlines()]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize(
    "arguments", [("version",), ("simulate", "-f", "cluster.yaml", "-o", "json")]
)
def test_a_full_disk_is_one_line(arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "kubestow", *arguments]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    first, *_ = done.stderr.splitlines()
    assert first == "kubestow: error: cannot write: No space left on device"
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_closed_output_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    shell = f'exec "{sys.executable}" -m kubestow simulate -f cluster.yaml >&-'
    done = subprocess.run(
        ["sh", "-c", shell],
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        cwd=tmp_path,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments", ["--help", "print-default-config", "bench --help"])
def test_a_reader_that_has_ended_is_no_error(arguments: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)  # as `kubestow … | head`, once it has its lines
    command = [sys.executable, "-m", "kubestow", *arguments.split()]
    with open(writing, "wb") as closed:
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


ASCII = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}


def test_output_for_programs_is_utf8_in_any_locale(tmp_path: Path) -> None:
    (tmp_path / "web.placement.yaml").write_text("expct: []\n")
    command = [sys.executable, "-m", "kubestow", "test", "-o", "markdown"]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, env=os.environ | ASCII)
    assert (done.returncode, done.stderr) == (2, b"")
    assert "\N{WARNING SIGN}" in done.stdout.decode()


def test_a_letter_that_a_terminal_does_not_have_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = io.BytesIO()
    terminal = io.TextIOWrapper(written, encoding="ascii")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", terminal)
    prepare_streams()
    print("web → größe")
    terminal.flush()
    assert written.getvalue() == b"web ? gr??e\n"


def test_a_name_that_is_no_text_is_printed(tmp_path: Path) -> None:
    name = b"web\xff.placement.yaml"
    (tmp_path / os.fsdecode(name)).write_text("expct: []\n")
    command = [sys.executable, "-m", "kubestow", "test"]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, b"")
    assert 'did you mean "expect"?' in done.stdout.decode()
