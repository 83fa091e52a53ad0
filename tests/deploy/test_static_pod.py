"""The static pod can replace kubeadm's: it is a pod, its flags are flags, its files can be read."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import PODS
from kubestow.service.options import SchedulerOptions, parse_options

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / "deploy" / "static-pod" / "kube-scheduler.yaml"
KUBECONFIG = "/etc/kubernetes/scheduler.conf"


@pytest.fixture
def pod() -> dict[str, Any]:
    return yaml.safe_load(MANIFEST.read_text())


def test_an_api_server_accepts_it(pod: dict[str, Any], cluster: MemoryCluster) -> None:
    stored = cluster.create(PODS, pod)
    assert stored.typed.spec.priority == 2_000_001_000  # of system-node-critical


def test_its_command_is_that_of_the_image_with_flags_of_the_scheduler(pod: dict[str, Any]) -> None:
    program, command, *flags = pod["spec"]["containers"][0]["command"]
    assert (program, command) == ("kubestow", "run")
    options = parse_options(flags)
    assert isinstance(options, SchedulerOptions)
    assert options.config.client_connection.kubeconfig == KUBECONFIG
    assert options.config.leader_election.leader_elect
    assert (options.config.leader_election.resource_namespace, options.serving.bind_address) == (
        "kube-system",
        "127.0.0.1",
    )


def test_the_kubeconfig_can_be_read(pod: dict[str, Any]) -> None:
    """kubeadm writes the file with mode 0600, owner root."""
    container = pod["spec"]["containers"][0]
    assert pod["spec"]["securityContext"]["runAsUser"] == 0
    assert "runAsUser" not in container["securityContext"]
    (volume,), (mount,) = pod["spec"]["volumes"], container["volumeMounts"]
    assert (volume["hostPath"]["path"], mount["mountPath"]) == (KUBECONFIG, KUBECONFIG)
    assert volume["name"] == mount["name"]


def test_probes_use_the_served_port(pod: dict[str, Any]) -> None:
    container = pod["spec"]["containers"][0]
    (port,) = container["ports"]
    assert port["containerPort"] == 10259
    probes = [container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    assert [probe["path"] for probe in probes] == ["/livez", "/livez", "/readyz"]
    for probe in probes:
        assert (probe["port"], probe["scheme"], probe["host"]) == (
            port["name"],
            "HTTPS",
            "127.0.0.1",
        )
