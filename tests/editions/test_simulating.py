"""`kubestow simulate --compatibility v1.9` and the file of `--policy` (spec 09 §13.1)."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kubestow.editions.flags import AlgorithmOptions
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


def config_file(folder: Path, **fields: Any) -> str:
    path = folder / "old.yaml"
    version = {"apiVersion": "kubescheduler.config.k8s.io/v1alpha1"}
    path.write_text(json.dumps({"kind": "KubeSchedulerConfiguration", **version, **fields}))
    return str(path)


def test_the_autoscalers_provider_places_differently(tmp_path: Path) -> None:
    autoscaler = config_file(tmp_path, algorithmSource={"provider": "ClusterAutoscalerProvider"})
    # A pod that is placed first, so that nodes differ for the others.
    first = tmp_path / "first.yaml"
    first.write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: first}, spec: {nodeName: node-a-1, "
        "containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}"
    )
    by_default, packed = (
        placed(simulate("-f", str(first), "-o", "json", "--compatibility", "v1.9", *args))
        for args in ((), ("--policy", autoscaler))
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
    source = {"policy": {"file": {"path": str(path)}}}
    for file in (str(path), config_file(tmp_path, algorithmSource=source)):
        output = simulate("-o", "json", "--compatibility", "v1.9", "--policy", file)
        assert set(placed(output).values()) == {"node-b-1"}


def test_a_policy_in_a_config_map_decides(tmp_path: Path) -> None:
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "policy", "namespace": "kube-system"},
        "data": {"policy.cfg": json.dumps(POLICY)},
    }
    path = tmp_path / "map.json"
    path.write_text(json.dumps(config_map))
    file = config_file(tmp_path, algorithmSource={"policy": {"configMap": {"name": "policy"}}})
    args = ("-f", str(path), "-o", "json", "--compatibility", "v1.9", "--policy", file)
    assert set(placed(simulate(*args)).values()) == {"node-b-1"}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"algorithmSource": {"provider": "X"}}, "the providers are ClusterAutoscaler"),
        (
            {"algorithmSource": {"policy": {"file": {"path": "missing.json"}}}},
            "missing policy config file",
        ),
        (
            {"algorithmSource": {"policy": {"configMap": {"name": "m"}}}},
            "couldn't get policy config map kube-system/m",
        ),
        (
            {"hardPodAffinitySymmetricWeight": 101},
            "invalid hardPodAffinitySymmetricWeight: 101, must be in the range 1-100",
        ),
        ({"leaderElection": {}}, 'old.yaml": .*unknown field `leaderElection`'),
        ({"schedulerName": 7}, 'old.yaml": Expected `str`'),
        (
            {"algorithmSource": {"provider": "X", "policy": {"file": {"path": "p"}}}},
            "more than one of provider, file and configMap",
        ),
        ({"apiVersion": "kubescheduler.config.k8s.io/v1"}, "are given with --config"),
        ({"kind": "Pod"}, 'kind is "Pod", expected Policy or KubeSchedulerConfiguration'),
    ],
)
def test_a_wrong_file_is_reported(tmp_path: Path, fields: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        simulate("--compatibility", "v1.9", "--policy", config_file(tmp_path, **fields))


@pytest.mark.parametrize(
    ("content", "text"), [("[1]", "kind is null"), ("{", "old.yaml"), (None, "cannot read")]
)
def test_a_file_that_is_no_configuration_is_named(
    tmp_path: Path, content: str | None, text: str
) -> None:
    path = tmp_path / "old.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=text):
        simulate("--compatibility", "v1.9", "--policy", str(path))


def test_a_newer_option_is_refused() -> None:
    with pytest.raises(InputError, match=r"newer than v1\.9"):
        simulate("--compatibility", "v1.9", "--percentage-of-nodes-to-score", "50")


def test_the_options_that_the_file_replaces_still_work(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(POLICY))
    args = ["simulate", *FILES, "-o", "json", "--compatibility", "v1.9"]
    result = CliRunner().invoke(app, [*args, "--policy-config-file", str(path)])
    warning = "kubestow: warning: --policy-config-file: write a file and use --policy FILE\n"
    assert result.stderr == warning
    assert result.stdout == CliRunner().invoke(app, [*args, "--policy", str(path)]).stdout
    with pytest.raises(InputError, match="--policy replaces --scheduler-name: leave out one"):
        simulate("--policy", str(path), "--scheduler-name", "old")


def test_a_policy_with_an_unknown_name_says_where_it_came_from(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("kind: Policy\npredicates: [{name: Nowhere}]\n")
    with pytest.raises(ConfigError, match="couldn't create scheduler from policy: Invalid config"):
        simulate("--compatibility", "v1.9", "--policy", str(path))


def test_extenders_of_a_policy_are_not_asked_to_bind(tmp_path: Path) -> None:
    # No server listens there: a binding by the extender would fail.
    extender = {"urlPrefix": "http://127.0.0.1:9", "bindVerb": "bind"}
    path = tmp_path / "policy.json"
    path.write_text(json.dumps({**POLICY, "extenders": [extender]}))
    output = simulate("--compatibility", "v1.9", "--policy", str(path))
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
