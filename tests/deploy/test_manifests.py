"""The manifests are valid objects, fit together, and allow what the scheduler does and no more."""

from pathlib import Path
from typing import Any

import pytest
import yaml

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


def objects(folder: str) -> list[dict[str, Any]]:
    root = DEPLOY / folder
    kustomization = yaml.safe_load((root / "kustomization.yaml").read_text())
    return [
        document
        for name in kustomization["resources"]
        for document in yaml.safe_load_all((root / name).read_text())
    ]


def the(kind: str, folder: str = "base") -> dict[str, Any]:
    return next(document for document in objects(folder) if document["kind"] == kind)


@pytest.mark.parametrize("folder", ["base", "monitoring"])
def test_every_file_is_named_and_every_object_complete(folder: str) -> None:
    files = {path.name for path in (DEPLOY / folder).glob("*.yaml")} - {"kustomization.yaml"}
    kustomization = yaml.safe_load((DEPLOY / folder / "kustomization.yaml").read_text())
    assert files == set(kustomization["resources"])
    for document in objects(folder):
        assert document["apiVersion"]
        assert document["metadata"]["name"]


def test_the_configuration_is_valid() -> None:
    raw = the("ConfigMap")["data"]["config.yaml"]
    config = decode_config(raw.encode(), DEFAULT_GATES)
    assert validate_config(config, DEFAULT_GATES) == []
    assert [profile.scheduler_name for profile in config.profiles] == ["kubestow"]


def test_the_deployment_runs_what_is_configured() -> None:
    pod = the("Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mounted = container["volumeMounts"][0]["mountPath"]
    assert f"--config={mounted}/config.yaml" in container["args"]
    assert pod["serviceAccountName"] == the("ServiceAccount")["metadata"]["name"]
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_nothing_is_allowed_beyond_what_a_scheduler_needs() -> None:
    for rule in the("ClusterRole")["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                needed = ALLOWED.get((group, resource), READ)
                assert set(rule["verbs"]) <= needed, (group, resource)


def test_the_lease_may_be_held_by_its_name_only() -> None:
    config = yaml.safe_load(the("ConfigMap")["data"]["config.yaml"])
    named = [rule for rule in the("Role")["rules"] if "resourceNames" in rule]
    assert named[0]["resourceNames"] == [config["leaderElection"]["resourceName"]]
