"""The chart makes the objects of `deploy/base` and `deploy/monitoring`, and its values work."""

import copy
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubestow.service.options import SchedulerOptions, parse_options

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "scripts"))

from pages import blocks, pages  # noqa: E402  (found through the line above)

pytestmark = pytest.mark.slow  # helm is a large program

Helm = Any  # conftest.Helm
Objects = list[dict[str, Any]]

MONITORED = ("--set=monitoring.enabled=true", "--set=tls.certManager=true")


def by_name(objects: Objects) -> dict[tuple[str, str], dict[str, Any]]:
    found = {(one["kind"], one["metadata"]["name"]): one for one in objects}
    assert len(found) == len(objects)
    return found


def the(kind: str, objects: Objects) -> dict[str, Any]:
    (found,) = (one for one in objects if one["kind"] == kind)
    return found


def comparable(objects: Objects) -> dict[tuple[str, str], dict[str, Any]]:
    """Without what differs by the tool: the namespace, which helm creates itself, how the pods
    follow the configuration, and the order of volumes. Configurations are compared as data."""
    kept = [copy.deepcopy(one) for one in objects if one["kind"] != "Namespace"]
    (config,) = (one for one in kept if "config.yaml" in one.get("data", {}))
    name, config["metadata"]["name"] = config["metadata"]["name"], "kubestow-config"
    config["data"]["config.yaml"] = yaml.safe_load(config["data"]["config.yaml"])
    made = by_name(kept)
    pod = made["Deployment", "kubestow"]["spec"]["template"]
    (volume,) = (one for one in pod["spec"]["volumes"] if one["name"] == "config")
    assert volume["configMap"] == {"name": name}
    volume["configMap"]["name"] = "kubestow-config"
    pod["metadata"].pop("annotations", None)
    for volumes in (pod["spec"]["volumes"], pod["spec"]["containers"][0]["volumeMounts"]):
        volumes.sort(key=lambda volume: volume["name"])
    return made


@pytest.mark.parametrize(
    ("folder", "flags"),
    [pytest.param("base", (), id="base"), pytest.param("monitoring", MONITORED, id="monitoring")],
)
def test_the_objects_are_those_of_kustomize(
    helm: Helm, kustomized: Callable[[str], Objects], folder: str, flags: tuple[str, ...]
) -> None:
    expected, found = comparable(kustomized(folder)), comparable(helm.template(*flags))
    assert found.keys() == expected.keys()
    for name, document in expected.items():
        assert found[name] == document, name


def test_the_chart_has_no_faults(helm: Helm) -> None:
    done = helm.run("lint", "--strict", str(helm.chart), *MONITORED)
    assert done.returncode == 0, done.stdout


def test_a_release_has_its_own_name_and_namespace_everywhere(helm: Helm) -> None:
    made = helm.template(*MONITORED, release="blue", namespace="green")
    for document in made:
        assert document["metadata"]["name"].startswith("blue")
        assert document["metadata"].get("namespace") in (None, "green", "kube-system")
    config = yaml.safe_load(by_name(made)["ConfigMap", "blue-config"]["data"]["config.yaml"])
    assert config["leaderElection"]["resourceName"] == "blue"
    assert config["leaderElection"]["resourceNamespace"] == "green"
    assert the("Certificate", made)["spec"]["dnsNames"] == ["blue.green.svc"]


@pytest.mark.parametrize(
    ("flag", "path", "value"),
    [
        pytest.param("image.repository=r/k", "containers.0.image", "r/k:0.1.0", id="repository"),
        pytest.param("image.tag=x", "containers.0.image", "kubestow:x", id="tag"),
        pytest.param(
            f"image.digest=sha256:{'0' * 64}",
            "containers.0.image",
            f"kubestow@sha256:{'0' * 64}",
            id="digest",
        ),
        pytest.param("priorityClassName=p", "priorityClassName", "p", id="priority"),
        pytest.param("resources.limits.memory=4Gi", "containers.0.resources.limits.memory", "4Gi"),
        pytest.param("nodeSelector.disk=ssd", "nodeSelector.disk", "ssd", id="node-selector"),
        pytest.param("tolerations[0].key=k", "tolerations.0.key", "k", id="tolerations"),
        pytest.param("extraArgs={--v=4}", "containers.0.args.2", "--v=4", id="arguments"),
        pytest.param("imagePullSecrets[0].name=s", "imagePullSecrets.0.name", "s", id="secrets"),
        pytest.param("image.pullPolicy=Always", "containers.0.imagePullPolicy", "Always"),
        pytest.param("tls.secretName=t", "volumes.1.secret.secretName", "t", id="certificate"),
    ],
)
def test_values_reach_the_pods(helm: Helm, flag: str, path: str, value: str) -> None:
    found: Any = the("Deployment", helm.template(f"--set={flag}"))["spec"]["template"]["spec"]
    for key in path.split("."):
        found = found[int(key)] if isinstance(found, list) else found[key]
    assert found == value


def test_replicas_and_budget(helm: Helm) -> None:
    made = helm.template("--set=replicas=3", "--set=podDisruptionBudget.maxUnavailable=2")
    assert the("Deployment", made)["spec"]["replicas"] == 3
    assert the("PodDisruptionBudget", made)["spec"]["maxUnavailable"] == 2
    without = helm.template("--set=podDisruptionBudget.enabled=false")
    assert not [one for one in without if one["kind"] == "PodDisruptionBudget"]


def test_who_may_reach_the_port(helm: Helm) -> None:
    def rules(*flags: str) -> Any:
        return the("NetworkPolicy", helm.template(*flags))["spec"]["ingress"]

    block = rules("--set=networkPolicy.from[0].ipBlock.cidr=10.0.0.0/8")
    assert [rule["from"] for rule in block] == [[{"ipBlock": {"cidr": "10.0.0.0/8"}}]]
    assert rules("--set-json=networkPolicy.from=[]") == []
    without = helm.template("--set=networkPolicy.enabled=false")
    assert not [one for one in without if one["kind"] == "NetworkPolicy"]


def test_a_prometheus_can_select_by_label(helm: Helm) -> None:
    made = helm.template(*MONITORED, "--set=monitoring.labels.release=prometheus")
    for kind in ("ServiceMonitor", "PrometheusRule"):
        assert the(kind, made)["metadata"]["labels"]["release"] == "prometheus"


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        pytest.param("replicas=two", "replicas", id="type"),
        pytest.param("replica=2", "replica", id="unknown"),
        pytest.param("image.digest=latest", "digest", id="digest"),
        pytest.param("extraArgs={v}", "extraArgs", id="argument"),
        pytest.param("networkPolicy.from[0].pods=x", "pods", id="peer"),
        pytest.param("plugins.rules=x", "invalid propertyName 'rules'", id="no-module"),
        pytest.param(
            "config.leaderElection.leaderElect=false", "set replicas to 1", id="no-election"
        ),
        pytest.param("monitoring.enabled=true", "set tls.certManager or tls.secretName", id="tls"),
    ],
)
def test_wrong_values_are_refused(helm: Helm, flag: str, text: str) -> None:
    assert text in helm.refuses(f"--set={flag}")


def test_the_schema_has_every_value(helm: Helm) -> None:
    schema = json.loads((helm.chart / "values.schema.json").read_text())
    values = yaml.safe_load((helm.chart / "values.yaml").read_text())
    for name, value in values.items():
        known = schema["properties"][name]
        if known.get("additionalProperties") is False:
            assert value.keys() <= known["properties"].keys(), name
    assert values.keys() == schema["properties"].keys() - {"global"}


def test_pods_follow_configuration_and_plugins(helm: Helm) -> None:
    def checksum(*flags: str) -> str:
        pod = the("Deployment", helm.template(*flags))["spec"]["template"]
        return pod["metadata"]["annotations"]["checksum/config"]

    plain = checksum()
    assert checksum() == plain
    assert checksum("--set=replicas=3") == plain
    assert checksum("--set=config.percentageOfNodesToScore=100") != plain
    assert checksum(r"--set=plugins.a\.py=b") != plain


def test_a_plugin_in_the_values_is_loaded_by_the_configuration(helm: Helm, tmp_path: Path) -> None:
    """The files of the guide; a process has the arguments and the environment of the pod."""
    for block in blocks((ROOT / "docs" / "guides" / "plugins-in-the-image.md").read_text()):
        if "save" in block.options:
            (tmp_path / block.options["save"]).write_text(block.code)
    made = helm.template(
        rf"--set-file=plugins.my_plugins\.py={tmp_path / 'my_plugins.py'}",
        f"--values={tmp_path / 'values.yaml'}",
    )
    pod = the("Deployment", made)["spec"]["template"]["spec"]
    container = pod["containers"][0]
    places = mounted(pod, by_name(made), tmp_path / "root")
    (path,) = (variable["value"] for variable in container["env"])
    code = (
        "import sys\n"
        "from kubestow.plugins.loading import load_plugins\n"
        "from kubestow.service.options import parse_options\n"
        "print('Reserved' in load_plugins(parse_options(sys.argv[1:]).config).registry)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, f"--config={places['/etc/kubestow'] / 'config.yaml'}"],
        env={"PYTHONPATH": f"{places[path]}:{':'.join(filter(None, sys.path))}"},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "True\n", done.stderr


def mounted(pod: Any, objects: Any, root: Path) -> dict[str, Path]:
    """The ConfigMaps of a pod as folders, by the path where the container has them."""
    volumes = {volume["name"]: volume["configMap"]["name"] for volume in pod["volumes"]}
    places: dict[str, Path] = {}
    for mount in pod["containers"][0]["volumeMounts"]:
        folder = places[mount["mountPath"]] = root / mount["name"]
        folder.mkdir(parents=True)
        for name, text in objects["ConfigMap", volumes[mount["name"]]]["data"].items():
            (folder / name).write_text(text)
    return places


PAGES = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in pages()}
INSTALLED = [
    pytest.param(text, line, id=f"{name}: {line}")
    for name, text in PAGES.items()
    for block in blocks(text, "sh")
    for line in block.code.splitlines()
    if re.match("helm (install|upgrade) kubestow deploy/chart ", line)
]


@pytest.mark.parametrize(("page", "command"), INSTALLED)
def test_helm_accepts_what_pages_show(helm: Helm, tmp_path: Path, page: str, command: str) -> None:
    for block in blocks(page):
        if "save" in block.options:
            (tmp_path / block.options["save"]).write_text(block.code)
    _, _, release, _, *flags = shlex.split(command)
    done = helm.run("template", release, str(helm.chart), *flags)
    assert done.returncode == 0, done.stderr


def test_the_arguments_are_flags_of_the_scheduler(helm: Helm, tmp_path: Path) -> None:
    made = helm.template(*MONITORED)
    (tmp_path / "config.yaml").write_text(
        by_name(made)["ConfigMap", "kubestow-config"]["data"]["config.yaml"]
    )
    pod = the("Deployment", made)["spec"]["template"]["spec"]
    run, *flags = pod["containers"][0]["args"]
    assert run == "run"
    options = parse_options([flag.replace("/etc/kubestow/", f"{tmp_path}/") for flag in flags])
    assert isinstance(options, SchedulerOptions)
    assert options.serving.cert_file == "/etc/kubestow-tls/tls.crt"
    tls = next(m for m in pod["containers"][0]["volumeMounts"] if m["name"] == "tls")
    assert tls["mountPath"] == "/etc/kubestow-tls"
