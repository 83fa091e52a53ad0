"""Recordings that are damaged, or no recordings: one sentence with file, scenario and fault."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from kubestow.errors import DecodeError
from kubestow.service.cli import app

RECORDING = Path(__file__).parents[3] / "conformance" / "ports.json.gz"
RUN = sorted((RECORDING.parent / "runs").glob("*.json.gz"))[0]


def refusal(path: Path) -> str:
    result = CliRunner().invoke(app, ["conformance", str(path)])
    assert isinstance(result.exception, DecodeError), result.exception
    return str(result.exception)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        pytest.param(b"", "is not a recording of decisions: Input data was truncated", id="empty"),
        pytest.param(b"[1]", "is not a recording of decisions: Expected `object`", id="list"),
        pytest.param(b'{"upstream": "\xff"}', "is not a recording of decisions", id="not-utf-8"),
        pytest.param(b"[" * 100_000, "is not a recording of decisions", id="deep"),
        pytest.param(b"\x1f\x8bxyz", "is cut off or damaged", id="gzip"),
        pytest.param(
            b'{"upstream": "v1.36.4", "family": "a", "scenarios": [{"name": "x"}]}',
            "scenario 0 lacks objects, incoming, expected",
            id="missing-parts",
        ),
        pytest.param(
            b'{"upstream": "v1.36.4", "family": "a", "scenarios": [{"name": "x", "objects": {},'
            b' "incoming": [], "expected": [], "gates": 5}]}',
            "needs feature gates 5",
            id="gates",
        ),
    ],
)
def test_files_that_are_no_recording(tmp_path: Path, raw: bytes, message: str) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(raw)
    assert message in refusal(path)


def drop_family(scenario: Any) -> None:
    del scenario["family"]


def drop_pod(scenario: Any) -> None:
    del scenario["expected"][0]["pod"]


def unknown_pod(scenario: Any) -> None:
    scenario["expected"][0]["pod"] = "nobody/knows"


def text_for_objects(scenario: Any) -> None:
    scenario["objects"] = "all"


def odd_node(scenario: Any) -> None:
    scenario["objects"]["nodes"][0]["spec"] = 5


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(drop_family, "lacks 'family'", id="no-family"),
        pytest.param(drop_pod, "lacks 'pod'", id="no-pod"),
        pytest.param(unknown_pod, "lacks 'nobody/knows'", id="unknown-pod"),
        pytest.param(text_for_objects, "has an odd value", id="objects-no-map"),
        pytest.param(odd_node, "spec is 5: expected a map", id="odd-node"),
    ],
)
def test_a_damaged_scenario_is_named(
    tmp_path: Path, damage: Callable[[Any], None], message: str
) -> None:
    recording = msgspec.json.decode(gzip.decompress(RECORDING.read_bytes()))
    scenario = recording["scenarios"][0]
    recording["scenarios"] = [scenario]
    damage(scenario)
    path = tmp_path / "damaged.json"
    path.write_bytes(msgspec.json.encode(recording))
    text = refusal(path)
    assert text.startswith(f'"{path}": scenario "{scenario["name"]}"')
    assert message in text


@pytest.mark.parametrize("key", ["initial", "steps", "expected", "final", "objects"])
def test_a_damaged_run_is_named(tmp_path: Path, key: str) -> None:
    recording = msgspec.json.decode(gzip.decompress(RUN.read_bytes()))
    scenario = recording["scenarios"][0]
    recording["scenarios"] = [scenario]
    scenario[key] = [5]
    path = tmp_path / "damaged.json"
    path.write_bytes(msgspec.json.encode(recording))
    assert refusal(path).startswith(f'"{path}": scenario "{scenario["name"]}"')
