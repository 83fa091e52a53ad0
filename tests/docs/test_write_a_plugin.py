"""The guide on plugins is run as it is written."""

import re
from pathlib import Path
from typing import Any

from kubestow.simulator.simulation import SimulationResult

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "write-a-plugin.md"


def node(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


def pod(name: str, node_name: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [{"name": "main", "image": "pause"}],
            **({"nodeName": node_name} if node_name else {}),
        },
    }


def run_guide(*, plugin: str, documents: list[dict[str, Any]]) -> SimulationResult:
    """Everything the guide shows, in order, with the name of the plugin to try put in."""
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    head, marker, tail = "\n".join(blocks).partition("config = SchedulerConfig")
    code = head + marker + tail.replace("PreferEmptyRacks", plugin)
    names: dict[str, Any] = {"documents": documents}
    exec(compile(code, str(GUIDE), "exec"), names)
    return names["result"]


def test_the_plugin_for_one_node_keeps_pods_off_other_colors() -> None:
    documents = [node("a", color="blue"), node("b", color="red"), pod("p")]
    result = run_guide(plugin="OnlyBlue", documents=documents)
    assert [outcome.node for outcome in result.pods] == ["a"]


def test_the_reason_of_the_plugin_for_one_node_reaches_the_pod() -> None:
    result = run_guide(plugin="OnlyBlue", documents=[node("b", color="red"), pod("p")])
    assert result.pods[0].message.startswith("0/1 nodes are available: 1 node(s) were not blue.")


def test_the_vectorised_plugin_prefers_the_emptier_rack() -> None:
    documents = [
        node("a", rack="r1"),
        node("b", rack="r2"),
        node("c"),
        *(pod(f"old-{i}", "a") for i in range(5)),
        pod("p"),
    ]
    result = run_guide(plugin="PreferEmptyRacks", documents=documents)
    assert [outcome.node for outcome in result.pods] == ["b"]
