"""The role for `kubestow rebalance` allows what the command does; its CronJob calls it right."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kubestow.service.cli import import_command
from kubestow.simulator.input.live import read_resources

FOLDER = Path(__file__).parents[2] / "deploy/rebalance"


def rights(name: str = "cluster-role.yaml") -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for rule in yaml.safe_load((FOLDER / name).read_text())["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                found.setdefault((group, resource), set()).update(rule["verbs"])
    return found


def test_the_role_has_what_the_command_does() -> None:
    expected = {(each.group, each.plural): {"list"} for each in read_resources()}
    expected["metrics.k8s.io", "pods"] = {"list"}
    expected["", "pods/eviction"] = {"create"}
    expected["", "nodes"] = {"list", "patch"}
    expected["events.k8s.io", "events"] = {"create", "patch"}
    assert rights() == expected


def test_the_role_for_surges_has_what_they_do_and_no_more() -> None:
    """The same as a real server asks for: tests/e2e/control_plane/test_rebalance.py."""
    assert rights("surge.yaml") == {
        ("autoscaling", "horizontalpodautoscalers"): {"list"},
        ("", "pods"): {"patch"},
        ("apps", "deployments/scale"): {"patch"},
        ("apps", "replicasets/scale"): {"patch"},
    }
    names = [
        yaml.safe_load((FOLDER / name).read_text()) for name in ("surge.yaml", "surge-binding.yaml")
    ]
    assert names[0]["metadata"]["name"] == names[1]["roleRef"]["name"]


def container() -> Any:
    job = yaml.safe_load((FOLDER / "cron-job.yaml").read_text())
    return job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]


def test_the_command_takes_the_options_of_the_job() -> None:
    name, *arguments = container()["args"]
    context = import_command(name).make_context(name, list(arguments))
    assert context.params["run"]
    assert context.params["yes"]


@pytest.mark.parametrize("name", ["cluster-role.yaml", "rbac.yaml", "cron-job.yaml"])
def test_the_folder_has_its_files(name: str) -> None:
    resources = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    assert name in resources
