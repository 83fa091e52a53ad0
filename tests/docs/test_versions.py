"""The page on versions names exactly the APIs and kinds that the scheduler uses."""

import re
from collections import defaultdict
from pathlib import Path

import yaml

from kubestow.api.workload import PriorityClass
from kubestow.cache.objects import ClusterObjects
from kubestow.cluster.resources import EVENTS, LEASES, client_resources

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "guides" / "versions.md").read_text(encoding="utf-8")
# Sent by the server that serves metrics; no resource is stored.
REVIEWS = {
    "authentication.k8s.io/v1": {"TokenReview"},
    "authorization.k8s.io/v1": {"SubjectAccessReview"},
}


def listed() -> dict[str, set[str]]:
    rows = re.findall(
        r"^\| `([a-z0-9./]+v\d(?:(?:alpha|beta)\d)?|v1)` \| ([^|]+) \| [\d.]+[^|]* \|$",
        TEXT,
        re.MULTILINE,
    )
    return {version: set(kinds.split(", ")) for version, kinds in rows}


def test_every_api_the_scheduler_uses_is_listed() -> None:
    used: dict[str, set[str]] = defaultdict(set, REVIEWS)
    resources = client_resources()
    watched = [cls for cls in ClusterObjects().types() if cls is not PriorityClass]
    for resource in (*map(resources.of_type, watched), EVENTS, LEASES):
        used[resource.api_version].add(resource.kind)
    assert listed() == used


def test_the_chart_needs_the_version_that_the_page_says() -> None:
    chart = yaml.safe_load((ROOT / "deploy" / "chart" / "Chart.yaml").read_text())
    (needed,) = re.findall(r"need (\d\.\d+), for `unhealthyPodEvictionPolicy`", TEXT)
    assert chart["kubeVersion"] == f">={needed}.0-0"
    budget = (ROOT / "deploy" / "base" / "disruption-budget.yaml").read_text()
    assert "unhealthyPodEvictionPolicy" in budget
