"""Texts of a cluster file reach a terminal without control characters, and forge no line."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from kubestow.service.cli import main

HOSTILE = "a\x1b]0;b\x07\u202e\nFORGED"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u202e]")


def _pod(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": "1"}}}
    metadata = {"name": name, "namespace": "default", "uid": name}
    spec = {"containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.fixture(name="cluster")
def _cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": HOSTILE}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node", "uid": "node"},
        "status": {"allocatable": {"cpu": "4", "pods": "10"}},
    }
    items = [
        node,
        _pod(
            "claims", {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": HOSTILE}}]}
        ),
        _pod("apart", {"affinity": affinity}),
        _pod("gated", {"schedulingGates": [{"name": HOSTILE}]}),
        _pod("plain", {}),
    ]
    content = {"apiVersion": "v1", "kind": "List", "items": items}
    (tmp_path / "cluster.json").write_text(json.dumps(content))
    return "cluster.json"


@pytest.mark.parametrize(
    "arguments",
    [
        "simulate",
        "simulate -o wide",
        "capacity --drain-check",
        "capacity --need --shape cpu=1",
        "capacity --headroom",
        "rebalance --goal balance",
        "upgrade --to v1.37",
        "upgrade --to v1.37 -o markdown",
        "explain --all",
        "explain claims",
        "explain gated",
    ],
)
def test_no_command_obeys_a_text(
    cluster: str,
    arguments: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubestow", *arguments.split(), "-f", cluster])
    with pytest.raises(SystemExit):
        main()
    output, errors = capsys.readouterr()
    assert output
    for line in (output + errors).splitlines():
        assert not CONTROL.search(line), line
        assert not line.startswith("FORGED"), line
