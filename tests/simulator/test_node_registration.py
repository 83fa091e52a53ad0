"""The first report of a node that no kubelet runs on."""

import pytest

from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import NODES
from kubestow.config.feature_gates import FeatureGates
from kubestow.editions import edition_named
from kubestow.simulator.node_registration import NodeRegistration
from kubestow.testing.clock import ManualClock


@pytest.mark.parametrize("version", ["v1.36", "v1.37"])
def test_the_kubelet_has_the_version_of_the_cluster(version: str) -> None:
    clock = ManualClock()
    cluster = MemoryCluster(clock, gates=FeatureGates({}, edition_named(version)))
    node = cluster.create(NODES, {"metadata": {"name": "n1"}})
    NodeRegistration(cluster, clock).register(node)
    status = cluster.get(NODES, "", "n1").document["status"]
    assert status["nodeInfo"]["kubeletVersion"] == f"{version}.0"
