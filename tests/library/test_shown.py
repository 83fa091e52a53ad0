"""How values show themselves at the prompt and in a notebook: short, whatever they hold."""

import json
from pathlib import Path

from typer.testing import CliRunner

from kubestow import load_cluster, simulate, simulate_trace
from kubestow.api.decode import to_document
from kubestow.service.cli import app
from kubestow.testing import make_node, make_pod

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_reprs_are_one_line() -> None:
    cluster = load_cluster(EXAMPLES)
    assert repr(cluster) == "<LoadedCluster: 4 nodes, 7 pods, 7 waiting>"
    assert repr(cluster.explain("reports-0")) == (
        "<Explanation of default/reports-0: Unschedulable>"
    )
    assert repr(cluster.decide("cache-0")) == (
        "<FrozenDecision on default/cache-0: node-b-1, 1 of 4 fit>"
    )
    assert repr(simulate(EXAMPLES)) == (
        "<SimulationResult: 6 of 7 pods scheduled, 1 pending, 4 nodes>"
    )
    traces = EXAMPLES / "traces"
    run = simulate_trace(traces / "pods.csv", nodes=traces / "nodes.csv")
    assert repr(run).startswith("<RunResult: pods, 72 pods, 6 nodes, ")
    assert "\n" not in repr(run)


def test_a_notebook_shows_a_table_of_the_first_rows() -> None:
    pods = [make_pod(f"p{i}") for i in range(25)]
    documents = [to_document(one) for one in (make_node("n"), *pods)]
    run = simulate(documents).run
    for shown in (load_cluster(documents), simulate(documents), run):
        html = shown._repr_html_()
        assert html.count("<tr>") == 21
        assert "and 5 more" in html


def test_texts_of_the_cluster_are_escaped() -> None:
    pod = to_document(make_pod("p", node_selector={"disk": "ssd"}))
    pod["metadata"]["namespace"] = "default"
    result = simulate(to_document(make_node("n")), pod)
    html = result._repr_html_()
    assert "node(s) didn&#x27;t match" in html


def test_an_explanation_prints_as_the_command_does(tmp_path: Path) -> None:
    documents = [to_document(one) for one in (make_node("n", cpu="1"), make_pod("p", cpu="2"))]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    why = load_cluster(path).explain("p")
    printed = CliRunner().invoke(app, ["explain", "p", "-f", str(path)]).output
    assert printed == f"{why}\n"
    assert why._repr_html_().startswith("<pre>Pod default/p: Unschedulable\n")
