"""What made a pod, in clusters that were read from files; reports name it."""

import csv
import sys
from pathlib import Path

import pytest

from kubestow.service.cli import main

TEMPLATE = (
    "{metadata: {labels: {app: web}}, spec: {POLICYcontainers: "
    "[{name: main, image: i, resources: {requests: {cpu: 250m}}}]}}"
)
FILES = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {capacity: {cpu: "8", memory: 16Gi, pods: "110", example.com/gpu: "2"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template: TEMPLATE
---
apiVersion: batch/v1
kind: Job
metadata:
  name: nightly-1
  ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: nightly, uid: u, controller: true}]
spec: {template: JOB_TEMPLATE}
---
apiVersion: v1
kind: Pod
metadata:
  name: of-a-dump
  labels: {pod-template-hash: 7f9c}
  ownerReferences:
  - {apiVersion: apps/v1, kind: ReplicaSet, name: api-7f9c, uid: u, controller: true}
spec:
  containers:
  - {name: main, image: i, resources: {limits: {example.com/gpu: 1, memory: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: alone}
spec: {containers: [{name: main, image: i}]}
"""


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[dict[str, str]]]:
    """The tables of a report, by name."""
    (tmp_path / "files.yaml").write_text(
        FILES.replace("JOB_TEMPLATE", TEMPLATE.replace("POLICY", "restartPolicy: Never, ")).replace(
            "TEMPLATE", TEMPLATE.replace("POLICY", "")
        )
    )
    arguments = [
        "simulate",
        "-f",
        str(tmp_path / "files.yaml"),
        "--report",
        str(tmp_path / "r.csv"),
    ]
    monkeypatch.setattr(sys, "argv", ["kubestow", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    return {
        path.name.split(".")[1]: list(csv.DictReader(path.read_text().splitlines()))
        for path in tmp_path.glob("r.*.csv")
    }


def test_reports_name_the_topmost_owner(tables: dict[str, list[dict[str, str]]]) -> None:
    owners = {row["owner"]: row["pods"] for row in tables["owners"]}
    assert owners == {"Deployment/web": "1", "CronJob/nightly": "1", "Deployment/api": "1", "": "1"}


def test_reports_have_requests_of_all_resources(tables: dict[str, list[dict[str, str]]]) -> None:
    pods = {row["name"]: row for row in tables["pods"]}
    assert pods["nightly-1-0"]["requests.cpu"] == "250"
    assert pods["of-a-dump"]["requests.example.com/gpu"] == "1"
    assert pods["of-a-dump"]["requests.memory"] == str(1 << 30)
    (node,) = tables["nodes"]
    assert (node["requested.example.com/gpu"], node["allocatable.example.com/gpu"]) == ("1", "2")
