"""The role for `kubestow explain` allows what the command reads, and nothing else."""

from pathlib import Path

import yaml

from kubestow.cache.objects import ClusterObjects
from kubestow.cluster.resources import client_resources
from kubestow.service.commands.explain.live import UNLISTED

ROLE = Path(__file__).parents[2] / "deploy/explain/cluster-role.yaml"


def rights() -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for rule in yaml.safe_load(ROLE.read_text())["rules"]:
        for group in rule.get("apiGroups", ["path"]):
            for resource in rule.get("resources") or rule["nonResourceURLs"]:
                found[group, resource] = set(rule["verbs"])
    return found


def test_the_role_has_what_the_command_reads() -> None:
    resources = client_resources()
    kinds = [cls for cls in ClusterObjects().types() if cls not in UNLISTED]
    read = {(resources.of_type(cls).group, resources.of_type(cls).plural) for cls in kinds}
    expected = {key: {"list"} for key in read}
    expected["", "pods"] = {"get", "list"}
    # Which CronJob a Job is of.
    expected["batch", "jobs"] = {"list"}
    expected["path", "/explain"] = {"get"}
    assert rights() == expected
