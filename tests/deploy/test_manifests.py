"""The manifests are valid objects, fit together, and allow what the scheduler does and no more."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kubestow import __version__
from kubestow.config.decoding import decode_config
from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.config.validation import validate_config

DEPLOY = Path(__file__).parents[2] / "deploy"

# Spec 09 §4.7: what kube-scheduler itself may do, by group and resource.
ALLOWED: dict[tuple[str, str], set[str]] = {
    ("", "pods"): {"get", "list", "watch", "delete"},
    ("", "pods/binding"): {"create"},
    ("", "pods/status"): {"patch", "update"},
    ("", "pods/finalizers"): {"update"},
    ("", "persistentvolumes"): {"get", "list", "watch", "patch", "update"},
    ("", "persistentvolumeclaims"): {"get", "list", "watch", "patch", "update"},
    ("", "events"): {"create", "patch", "update"},
    ("events.k8s.io", "events"): {"create", "patch", "update"},
    ("resource.k8s.io", "resourceclaims"): {
        "get",
        "list",
        "watch",
        "create",
        "delete",
        "patch",
        "update",
    },
    ("resource.k8s.io", "resourceclaims/status"): {"get", "list", "watch", "patch", "update"},
    ("resource.k8s.io", "resourceclaims/binding"): {"patch", "update"},
    ("authentication.k8s.io", "tokenreviews"): {"create"},
    ("authorization.k8s.io", "subjectaccessreviews"): {"create"},
}
READ = {"get", "list", "watch"}


def kustomization(folder: str) -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / folder / "kustomization.yaml").read_text())


def objects(folder: str) -> list[dict[str, Any]]:
    """The objects of the folder's own files."""
    return [
        document
        for name in kustomization(folder)["resources"]
        if name.endswith(".yaml")
        for document in yaml.safe_load_all((DEPLOY / folder / name).read_text())
    ]


def the(kind: str, folder: str = "base") -> dict[str, Any]:
    return next(document for document in objects(folder) if document["kind"] == kind)


@pytest.mark.parametrize("folder", ["base", "monitoring"])
def test_every_file_is_named_and_every_object_complete(folder: str) -> None:
    files = {path.name for path in (DEPLOY / folder).iterdir()} - {"kustomization.yaml"}
    settings = kustomization(folder)
    named = {name for name in settings["resources"] if name.endswith(".yaml")}
    for generator in settings["configMapGenerator"]:
        named |= {name.rpartition("=")[2] for name in generator["files"]}
    named |= {patch["path"] for patch in settings.get("patches", ()) if "path" in patch}
    assert files == named
    for document in objects(folder):
        assert document["apiVersion"]
        assert document["metadata"]["name"]


def test_the_configuration_is_valid() -> None:
    config = decode_config((DEPLOY / "base" / "config.yaml").read_bytes(), DEFAULT_GATES)
    assert validate_config(config, DEFAULT_GATES) == []
    assert [profile.scheduler_name for profile in config.profiles] == ["kubestow"]


def test_the_deployment_runs_what_is_configured() -> None:
    pod = the("Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mounted = container["volumeMounts"][0]["mountPath"]
    assert f"--config={mounted}/config.yaml" in container["args"]
    assert pod["serviceAccountName"] == the("ServiceAccount")["metadata"]["name"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


# As kubeadm v1.36 sets them for kube-scheduler: delay, period, time limit, failures.
PROBES = {
    "startupProbe": ("/livez", 10, 10, 15, 24),
    "livenessProbe": ("/livez", 10, 10, 15, 8),
    "readinessProbe": ("/readyz", 0, 1, 15, 3),
}


@pytest.mark.parametrize("manifest", ["base/deployment.yaml", "static-pod/kube-scheduler.yaml"])
def test_probes_have_the_times_of_kubeadm(manifest: str) -> None:
    document = yaml.safe_load((DEPLOY / manifest).read_text())
    pod = document["spec"].get("template", document)["spec"]
    (container,) = pod["containers"]
    for name, expected in PROBES.items():
        probe = container[name]
        times = ("periodSeconds", "timeoutSeconds", "failureThreshold")
        found = (
            probe["httpGet"]["path"],
            probe.get("initialDelaySeconds", 0),
            *(probe[time] for time in times),
        )
        assert found == expected, name


def test_the_port_is_open_to_prometheus_only() -> None:
    policy = the("NetworkPolicy")["spec"]
    labels = the("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"] == labels
    assert policy["policyTypes"] == ["Ingress"]
    (rule,) = policy["ingress"]
    # A rule without peers, and a peer without a selector, would allow all.
    (peer,) = rule["from"]
    assert peer == {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}
    }
    (port,) = rule["ports"]
    (container,) = the("Deployment")["spec"]["template"]["spec"]["containers"]
    assert port["port"] in [one["name"] for one in container["ports"]]


def test_nothing_is_allowed_beyond_what_a_scheduler_needs() -> None:
    for rule in the("ClusterRole")["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                needed = ALLOWED.get((group, resource), READ)
                assert set(rule["verbs"]) <= needed, (group, resource)


def test_the_lease_may_be_held_by_its_name_only() -> None:
    config = yaml.safe_load((DEPLOY / "base" / "config.yaml").read_text())
    named = [rule for rule in the("Role")["rules"] if "resourceNames" in rule]
    assert named[0]["resourceNames"] == [config["leaderElection"]["resourceName"]]


def test_the_budget_and_the_service_select_the_pods() -> None:
    labels = the("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert the("Deployment")["spec"]["selector"]["matchLabels"] == labels
    assert the("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    assert the("Service", "monitoring")["spec"]["selector"] == labels


@pytest.mark.slow
def test_a_changed_configuration_replaces_the_pods(kustomized: Any) -> None:
    made = {found["kind"]: found for found in kustomized("base")}
    name = made["ConfigMap"]["metadata"]["name"]
    assert name.startswith("kubestow-config-")  # and a hash of its content
    assert made["Role"]["rules"] == the("Role")["rules"]  # the hash is in no other name
    assert made["ConfigMap"]["data"] == {
        "config.yaml": (DEPLOY / "base" / "config.yaml").read_text()
    }
    pod = made["Deployment"]["spec"]["template"]["spec"]
    assert pod["volumes"] == [{"name": "config", "configMap": {"name": name}}]
    assert pod["containers"][0]["image"] == f"kubestow:{__version__}"
