"""Alerts and dashboard ask for series that the scheduler has, with labels that they have."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from kubestow.clock import SystemClock
from kubestow.service.metrics.component import RuntimeMetrics
from kubestow.service.metrics.process_metrics import ProcessMetrics
from kubestow.service.options import SchedulerOptions, parse_options

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text())
RULES = yaml.safe_load((MONITORING / "prometheus-rule.yaml").read_text())["spec"]["groups"]
# Prometheus adds these to all series, or makes the series itself.
TARGET_LABELS = {"job", "instance", "namespace", "pod"}
OWN_SERIES = {"up": set[str]()}

_STRING = re.compile(r'"[^"]*"')
_SELECTOR = re.compile(r"(?P<metric>[a-zA-Z_:][\w:]*)?\{(?P<labels>[^}]*)\}")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring)\s*\((?P<labels>[^)]*)\)")
_NAME = re.compile(r"[a-zA-Z_:][\w:]*")
_WORDS = {"and", "or", "unless", "bool", "by", "without", "on", "ignoring", "offset"}


def series() -> dict[str, set[str]]:
    """Every series of `/metrics` with its labels."""
    options = parse_options([])
    assert isinstance(options, SchedulerOptions)
    registry = ProcessMetrics(options, SystemClock(), np.random.default_rng(0)).registry
    found: dict[str, set[str]] = dict(OWN_SERIES)
    for name in registry.names():
        family = registry.family(name)
        assert family is not None
        labels = set(family.label_names)
        if family.kind == "histogram":
            found |= {f"{name}_bucket": labels | {"le"}, f"{name}_sum": labels}
            found[f"{name}_count"] = labels
        else:
            found[name] = labels
    for line in RuntimeMetrics().text().splitlines():
        if not line.startswith("#"):
            name = re.split(r"[{ ]", line, maxsplit=1)[0]
            found.setdefault(name, set()).update(re.findall(r'(\w+)="', line))
    return found


SERIES = series()


class Query:
    """The names in an expression. Functions are followed by a parenthesis; durations and numbers
    begin with a digit or a `$`."""

    def __init__(self, text: str) -> None:
        plain = _STRING.sub('""', text)
        selected = [found["labels"] for found in _SELECTOR.finditer(plain)]
        grouped = [found["labels"] for found in _GROUPING.finditer(plain)]
        self.labels = {name for part in (*selected, *grouped) for name in _NAME.findall(part)}
        bare = re.sub(r"\{[^}]*\}|\[[^]]*\]", " ", _GROUPING.sub(" ", plain))
        self.metrics = {
            found[0]
            for found in re.finditer(r"(?<![\w$])[a-zA-Z_:][\w:]*(?!\s*\(|[\w:])", bare)
            if found[0] not in _WORDS
        }


def expressions() -> Iterator[tuple[str, str]]:
    for group in RULES:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


@pytest.mark.parametrize(
    ("name", "expression"), [pytest.param(*one, id=" ".join(one)) for one in expressions()]
)
def test_every_series_and_label_exists(name: str, expression: str) -> None:
    query = Query(expression)
    assert query.metrics
    assert query.metrics <= SERIES.keys()
    known = set[str]().union(*(SERIES[metric] for metric in query.metrics))
    assert query.labels <= known | TARGET_LABELS


@pytest.mark.parametrize(
    ("text", "metrics", "labels"),
    [
        pytest.param('a{x="y"} == 1', {"a"}, {"x"}, id="selector"),
        pytest.param('sum by (x, le) (rate(a_b{c=~"d|e"}[5m]))', {"a_b"}, {"x", "le", "c"}),
        pytest.param("a and on (i) b / c offset 5m", {"a", "b", "c"}, {"i"}, id="operators"),
        pytest.param("rate(a[$__rate_interval]) > 0.5", {"a"}, set(), id="range"),
        pytest.param('absent(up{job="x y"})', {"up"}, {"job"}, id="text"),
    ],
)
def test_names_are_found_in_expressions(text: str, metrics: set[str], labels: set[str]) -> None:
    assert (Query(text).metrics, Query(text).labels) == (metrics, labels)


def test_legends_and_texts_use_labels_of_their_query() -> None:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            used = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert used <= Query(target["expr"]).labels | TARGET_LABELS, panel["title"]
    for group in RULES:
        for rule in group["rules"]:
            used = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
            assert used <= Query(rule["expr"]).labels, rule["alert"]


def test_alerts_are_complete() -> None:
    rules = [rule for group in RULES for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert re.fullmatch(r"\d+m", rule["for"])
        assert rule["annotations"].keys() == {"summary", "description"}


def test_the_dashboard_has_the_structure_of_grafana() -> None:
    assert {"title", "uid", "schemaVersion", "panels", "templating", "time"} <= DASHBOARD.keys()
    (variable,) = DASHBOARD["templating"]["list"]
    panels: list[dict[str, Any]] = DASHBOARD["panels"]
    assert [panel["id"] for panel in panels] == [*range(1, len(panels) + 1)]
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        assert panel["type"] in ("stat", "timeseries")
        assert panel["datasource"] == {"type": "prometheus", "uid": f"${{{variable['name']}}}"}
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_prometheus_verifies_the_certificate() -> None:
    monitor = yaml.safe_load((MONITORING / "service-monitor.yaml").read_text())
    (endpoint,) = monitor["spec"]["endpoints"]
    certificate = next(
        found
        for found in yaml.safe_load_all((MONITORING / "certificate.yaml").read_text())
        if found["kind"] == "Certificate"
    )
    tls = endpoint["tlsConfig"]
    assert tls.keys() == {"ca", "serverName"}
    assert tls["ca"]["secret"]["name"] == certificate["spec"]["secretName"]
    assert [tls["serverName"]] == certificate["spec"]["dnsNames"]
    service = yaml.safe_load((MONITORING / "service.yaml").read_text())["metadata"]
    assert tls["serverName"] == f"{service['name']}.{service['namespace']}.svc"
    assert service["labels"][monitor["spec"]["jobLabel"]] == "kubestow"
