"""Whatever a part of the cluster writes, the document and the typed struct are of one object."""

import pytest

from kubestow.api.decode import convert
from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import Change, Collection
from kubestow.config.defaults import complete_config
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.bench.day import run_day
from kubestow.simulator.scenario.reading import parse_scenario
from kubestow.simulator.scenario.run import run_scenario

SCENARIO = b"""
apiVersion: kubestow.dev/v1alpha1
kind: Scenario
name: small
until: 2h
seed: 3
nodes: [{name: n, count: 4, capacity: {cpu: 4, memory: 16Gi}}]
priorities: {high: 1000}
objects:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      replicas: 4
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: web, resources: {requests: {cpu: 500m}}}]}
arrivals:
  - name: crash
    every: 40m
    template:
      apiVersion: v1
      kind: Pod
      metadata: {annotations: {kubestow.io/exit-code: "1", kubestow.io/run-seconds: "30"}}
      spec: {restartPolicy: OnFailure, containers: [{name: c, resources: {requests: {cpu: 1}}}]}
  - name: job
    poisson: 10/h
    duration: {exponential: 15m}
    template:
      apiVersion: batch/v1
      kind: Job
      spec:
        parallelism: 2
        template:
          spec: {restartPolicy: Never, containers: [{name: m, resources: {requests: {cpu: 1}}}]}
  - name: urgent
    every: 30m
    duration: 20m
    replicas: 3
    template:
      apiVersion: v1
      kind: Pod
      spec: {priorityClassName: high, containers: [{name: m, resources: {requests: {cpu: 3}}}]}
actions:
  - {at: 30m, scale: {kind: Deployment, name: web, replicas: 6}}
  - {at: 60m, drain: n-1, for: 20m}
  - {at: 80m, scale: {kind: Deployment, name: web, replicas: 2}}
"""


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Change]:
    """All changes of all stores."""
    changes: list[Change] = []
    publish = MemoryCluster._publish

    def publish_noted(self: MemoryCluster, collection: Collection, change: Change) -> None:
        publish(self, collection, change)
        changes.append(change)

    monkeypatch.setattr(MemoryCluster, "_publish", publish_noted)
    return changes


def check(written: list[Change]) -> None:
    for change in reversed(written):  # the newest document is made of all before it
        stored = change.last_state() if change.new is None else change.new
        desired = without_writes(stored.desired)
        assert stored.document["metadata"]["resourceVersion"] == str(change.version)
        assert convert(stored.resource.cls, stored.document) == stored.typed
        assert desired == without_writes(stored.document)


def without_writes(document: JsonObject) -> JsonObject:
    """A document without what typed writes may change."""
    metadata = {**document["metadata"], "resourceVersion": ""}
    spec = {key: value for key, value in document.get("spec", {}).items() if key != "nodeName"}
    return {**document, "metadata": metadata, "spec": spec, "status": {}}


def test_a_scenario_writes_documents_and_structs_that_agree(written: list[Change]):
    config = complete_config(SchedulerConfig())
    run_scenario(parse_scenario(SCENARIO, "small.yaml"), config)
    assert len(written) > 500
    check(written)


def test_a_day_of_pods_writes_documents_and_structs_that_agree(written: list[Change]):
    run_day(nodes=5, pods=60)
    assert len(written) > 200
    check(written)
