"""`kubestow simulate --compatibility v1.9` and the flags of v1.9 (spec 09 §13.1)."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kubestow.editions.algorithm_options import AlgorithmOptions
from kubestow.errors import ConfigError, InputError
from kubestow.service.cli import app

ROOT = Path(__file__).parents[2]
FILES = [
    argument
    for name in ("cluster.yaml", "workload.yaml")
    for argument in ("-f", str(ROOT / "examples" / name))
]


def simulate(*args: str) -> str:
    result = CliRunner().invoke(app, ["simulate", *FILES, *args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0
    return result.output


def placed(output: str) -> dict[str, str]:
    return {pod["name"]: pod.get("node", "") for pod in json.loads(output)["pods"]}


def test_reasons_have_the_texts_of_v1_9() -> None:
    output = simulate("--compatibility", "v1.9")
    assert "6 of 7 pods scheduled" in output
    assert "1 PodToleratesNodeTaints, 3 Insufficient cpu." in output


def test_the_autoscalers_provider_places_differently(tmp_path: Path) -> None:
    # A pod that is placed first, so that nodes differ for the others.
    first = tmp_path / "first.yaml"
    first.write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: first}, spec: {nodeName: node-a-1, "
        "containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}"
    )
    by_default, packed = (
        placed(simulate("-f", str(first), "-o", "json", "--compatibility", "v1.9", *args))
        for args in ((), ("--algorithm-provider", "ClusterAutoscalerProvider"))
    )
    assert packed != by_default


POLICY = {
    "kind": "Policy",
    "apiVersion": "v1",
    "predicates": [
        {"name": "OnlySsd", "argument": {"labelsPresence": {"labels": ["disk"], "presence": True}}}
    ],
}


def test_a_policy_file_decides(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(POLICY))
    args = ("-o", "json", "--compatibility", "v1.9", "--policy-config-file", str(path))
    assert set(placed(simulate(*args)).values()) == {"node-b-1"}


def test_a_policy_in_a_config_map_decides(tmp_path: Path) -> None:
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "policy", "namespace": "kube-system"},
        "data": {"policy.cfg": json.dumps(POLICY)},
    }
    path = tmp_path / "map.json"
    path.write_text(json.dumps(config_map))
    args = ("-f", str(path), "-o", "json", "--compatibility", "v1.9", "--policy-configmap")
    assert set(placed(simulate(*args, "policy")).values()) == {"node-b-1"}


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        (["--algorithm-provider", "X"], ConfigError, "the providers are ClusterAutoscaler"),
        (["--policy-config-file", "missing.json"], ConfigError, "missing policy config file"),
        (["--policy-configmap", "m"], ConfigError, "couldn't get policy config map kube-system/m"),
        (
            ["--hard-pod-affinity-symmetric-weight", "101"],
            ConfigError,
            "invalid hardPodAffinitySymmetricWeight: 101, must be in the range 1-100",
        ),
        (["--percentage-of-nodes-to-score", "50"], InputError, "newer than v1.9"),
    ],
)
def test_wrong_input_is_reported(args: list[str], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        simulate("--compatibility", "v1.9", *args)


def test_a_policy_with_an_unknown_name_says_where_it_came_from(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("kind: Policy\npredicates: [{name: Nowhere}]\n")
    with pytest.raises(ConfigError, match="couldn't create scheduler from policy: Invalid config"):
        simulate("--compatibility", "v1.9", "--policy-config-file", str(path))


def test_extenders_of_a_policy_are_not_asked_to_bind(tmp_path: Path) -> None:
    # No server listens there: a binding by the extender would fail.
    extender = {"urlPrefix": "http://127.0.0.1:9", "bindVerb": "bind"}
    path = tmp_path / "policy.json"
    path.write_text(json.dumps({**POLICY, "extenders": [extender]}))
    output = simulate("--compatibility", "v1.9", "--policy-config-file", str(path))
    assert "Extenders are not asked to bind in a simulation." in output
    assert "node-b-1" in output
    assert "Binding rejected" not in output


def test_recordings_of_v1_9_are_replayed_by_v1_9() -> None:
    recording = ROOT / "conformance" / "v1.9" / "taints.json.gz"
    result = CliRunner().invoke(app, ["conformance", str(recording), "-o", "json"])
    assert result.exit_code == 0
    assert list(json.loads(result.output)["families"]) == ["v1.9 taints"]


def test_flags_of_v1_9_need_v1_9() -> None:
    with pytest.raises(InputError, match="flags of older schedulers need --compat"):
        simulate("--algorithm-provider", "ClusterAutoscalerProvider")


@pytest.mark.parametrize(
    ("options", "source"),
    [
        ({}, "provider"),
        ({"policy_config_file": "f"}, "file"),
        ({"policy_configmap": "m"}, "configmap"),
        ({"policy_configmap": "m", "policy_config_file": "f"}, "configmap"),
        (
            {"policy_configmap": "m", "policy_config_file": "f", "use_legacy_policy_config": True},
            "file",
        ),
        ({"use_legacy_policy_config": True}, "file"),
    ],
)
def test_where_the_algorithms_come_from(options: dict[str, Any], source: str) -> None:
    assert AlgorithmOptions(**options).source == source
