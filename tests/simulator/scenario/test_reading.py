"""Mistakes in a scenario are found before it is played, with file, line and field."""

from pathlib import Path
from typing import Any

import pytest

from kubestow.errors import InputError
from kubestow.simulator.scenario.reading import read_scenario

BASE = """\
name: test
until: 1h
nodes:
  - {name: node, count: 2, capacity: {cpu: 4}}
"""
POD = """\
    template:
      apiVersion: v1
      kind: Pod
      spec:
        containers: [{name: main, image: x}]
"""
ARRIVAL = f"{BASE}arrivals:\n  - name: batch\n{POD}"


def read(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "day.yaml"
    path.write_text(text, encoding="utf-8")
    return read_scenario(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            f"{ARRIVAL}    duraton: 10m\n    every: 1h\n",
            'line 12: arrivals[0].duraton: unknown field; did you mean "duration"?',
            id="unknown-field",
        ),
        pytest.param(
            f"{ARRIVAL}    every: 1h\n    duration: {{exponentail: 3}}\n",
            "line 13: arrivals[0].duration.exponentail: unknown field; did you mean",
            id="unknown-field-inside",
        ),
        pytest.param(
            f"{ARRIVAL}    every: 1h\n    duration: -5m\n",
            'line 13: arrivals[0].duration: is "-5m", expected 0 or more',
            id="negative-duration",
        ),
        pytest.param(
            f"{ARRIVAL}    every: 0s\n",
            'line 12: arrivals[0].every: is "0s", expected more than 0',
            id="no-time-between",
        ),
        pytest.param(
            f"{ARRIVAL}    every: soon\n",
            'line 12: arrivals[0].every: is "soon": time: invalid duration "soon"; expected, for '
            "example, 10m",
            id="no-duration",
        ),
        pytest.param(
            f"{ARRIVAL}    every: 1h\n    poisson: 3/h\n",
            "line 13: arrivals[0].poisson: found every and poisson, expected one of at, every",
            id="two-timings",
        ),
        pytest.param(
            f"{ARRIVAL}    poisson: often\n",
            'line 12: arrivals[0].poisson: is "often", expected a rate such as 30/h or 2/24h',
            id="no-rate",
        ),
        pytest.param(
            f"{ARRIVAL}    poisson: 20\n",
            "line 12: arrivals[0].poisson: is 20, expected, for example, 30/h",
            id="rate-without-a-time",
        ),
        pytest.param(
            f"{BASE}sampleEvery: [1]\n",
            "line 5: sampleEvery: is [1], expected a number or a string",
            id="no-scalar",
        ),
        pytest.param(
            f"{BASE}actions:\n  - at: [1m, 30h]\n    cordon: node-0\n",
            "line 6: actions[0].at[1]: is 30h, but the scenario ends after ",
            id="action-after-the-end",
        ),
        pytest.param(
            f"{BASE}actions:\n  - every: 1m\n    from: 30h\n    cordon: node-0\n",
            "line 7: actions[0].from: is 30h, but the scenario ends after ",
            id="actions-that-begin-after-the-end",
        ),
        pytest.param(
            f"{ARRIVAL}    at: 30h\n",
            "line 12: arrivals[0].at: is 30h, but the scenario ends after ",
            id="arrival-after-the-end",
        ),
        pytest.param(
            f"{ARRIVAL}    at: [1m, -1s]\n",
            'line 12: arrivals[0].at[1]: is "-1s", expected 0 or more',
            id="negative-time",
        ),
        pytest.param(
            f"{ARRIVAL}    csv: pods.csv\n",
            'line 12: arrivals[0].csv: cannot read "',
            id="missing-csv",
        ),
        pytest.param(
            f"{BASE}arrivals:\n  - name: batch\n    file: pod.yaml\n    every: 1h\n",
            'line 7: arrivals[0].file: cannot read "',
            id="missing-file",
        ),
        pytest.param(
            f"{BASE}cluster: [nodes.yaml]\n",
            'line 5: cluster[0]: cannot read "',
            id="missing-cluster",
        ),
        pytest.param(
            f"{BASE}arrivals:\n  - name: batch\n    every: 1h\n",
            "line 6: arrivals[0]: give either template or file: what arrives",
            id="nothing-arrives",
        ),
        pytest.param(
            f"{ARRIVAL}    every: 1h\n  - name: batch\n{POD}    every: 1h\n",
            'line 13: arrivals[1].name: "batch" is also the name of arrivals[0]',
            id="name-twice",
        ),
        pytest.param(
            f"{BASE}arrivals:\n  - name: Batch Jobs\n{POD}    every: 1h\n",
            'line 6: arrivals[0].name: is "Batch Jobs", expected a string of the form ^',
            id="name-no-object-can-have",
        ),
        pytest.param(
            ARRIVAL.replace("containers:", "containrs:") + "    every: 1h\n",
            "line 11: arrivals[0].template.spec.containrs: unknown field of a Pod; did you mean "
            '"containers"?',
            id="unknown-field-of-a-pod",
        ),
        pytest.param(
            f"{ARRIVAL}    every: 1h\n    duration: {{uniform: {{min: 2m, max: 1m}}}}\n",
            "line 13: arrivals[0].duration.uniform.max: is 1m, less than min",
            id="no-range",
        ),
        pytest.param(
            f"{BASE}actions:\n  - at: 1m\n    cordon: node-0\n    drain: node-1\n",
            "line 6: actions[0]: found cordon and drain, expected one of",
            id="two-actions",
        ),
        pytest.param(
            f"{BASE}actions:\n  - at: 1m\n    fail: {{random: 1}}\n",
            'line 6: actions[0]: the field "name" is missing: chance depends on it',
            id="chance-without-a-name",
        ),
        pytest.param(
            f"{BASE}actions:\n  - at: 1m\n    leave: node-0\n    for: 5m\n",
            "line 8: actions[0].for: a leave has no end; only cordon, drain, fail, taint, upgrade",
            id="no-end",
        ),
        pytest.param(
            f"{BASE}actions:\n  - at: 1m\n    taint: {{nodes: node-0, taints: [slow]}}\n",
            'line 7: actions[0].taint.taints[0]: is "slow", expected KEY=VALUE:EFFECT',
            id="no-taint",
        ),
        pytest.param("name: test\n", 'line 1: the field "until" is missing', id="no-end-of-time"),
        pytest.param(
            f"{BASE}seed: 1{'0' * 30}\n",
            f"line 5: seed: is 1{'0' * 30}, expected at most 1000000000000000",
            id="seed-too-large",
        ),
        pytest.param("- 1\n", "line 1: found a list, expected a map of fields", id="no-map"),
        pytest.param(
            f"{BASE}apiVersion: kubestow.dev/v9\n",
            'line 5: apiVersion: is "kubestow.dev/v9", expected kubestow.dev/v1alpha1',
            id="another-version",
        ),
        pytest.param(
            f"{BASE}  - {{name: node, count: 2}}\n",
            'line 5: nodes[1].name: two nodes are called "node-0"; give this entry another name',
            id="nodes-of-one-name",
        ),
        pytest.param(
            f"{BASE}start: tomorrow\n",
            'line 5: start: is "tomorrow", expected a date such as 2026-01-01T00:00:00Z',
            id="no-date",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert f"{tmp_path}/day.yaml, {message}" in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("at,cpu\n0,1\n5\n", "pods.csv, line 3: has 1 columns, expected 2 as in line 1"),
        ("at,cpu\n0,1\n5,lots\n", 'pods.csv, line 3, column cpu: is "lots", expected a quantity'),
        ("at\n5\n4\n", 'pods.csv, line 3, column at: is "4", before the line above; sort'),
        ("at,duration\n0,-3\n", 'pods.csv, line 2, column duration: is "-3", expected 0'),
        ("at,dration\n", 'pods.csv, line 1: unknown column "dration"; did you mean "duration"?'),
        ("duration\n1\n", 'pods.csv, line 1: the column "at" is missing'),
    ],
)
def test_a_broken_line_of_a_csv_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "pods.csv").write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as error:
        read(tmp_path, f"{ARRIVAL}    csv: pods.csv\n")
    assert "day.yaml, line 12: arrivals[0].csv: " in str(error.value)
    assert message in str(error.value)


def test_a_duration_needs_pods_that_end(tmp_path: Path) -> None:
    text = f"{ARRIVAL}    every: 1h\n    duration: 5m\n"
    endless = text.replace("spec:\n", "spec:\n        restartPolicy: Always\n")
    with pytest.raises(InputError, match="restartPolicy Always does not end; use leaveAfter"):
        read(tmp_path, endless)
    read(tmp_path, text)


def test_arrivals_of_a_csv_file_change_the_template(tmp_path: Path) -> None:
    lines = "at,duration,name,cpu,example.com/gpu\n0,10m,first,500m,\n2m,,,,1\n"
    (tmp_path / "pods.csv").write_text(lines, encoding="utf-8")
    (source,) = read(tmp_path, f"{ARRIVAL}    csv: pods.csv\n").arrivals
    first, second = source(0)
    assert (first.time_s, first.duration_s, first.owner) == (0.0, 600.0, "batch")
    assert first.document["metadata"]["name"] == "first"
    (container,) = first.document["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "500m"}}
    assert (second.time_s, second.duration_s) == (120.0, None)
    (container,) = second.document["spec"]["containers"]
    assert container["resources"]["limits"] == {"example.com/gpu": "1"}
