from itertools import product

import pytest

from kubestow.api.decode import convert
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.writes.patch import merge_patch
from kubestow.cluster.documents import whole_seconds
from kubestow.simulator import kubelet_status

NOW_NS = 1_700_000_000_123_456_789
SCHEDULED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
LOST = {"type": "Ready", "status": "False", "reason": "NodeLost", "message": "gone"}
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
CONDITIONS = ([], [SCHEDULED], [LOST, SCHEDULED], [READY, LOST], [SCHEDULED, READY])
SPECS = (
    {"containers": [{"name": "a", "image": "x"}, {"name": "b"}]},
    {"initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]},
)
STARTS = ({}, {"startTime": "2026-01-01T00:00:00Z", "podIP": "10.0.0.1", "qosClass": "Burstable"})


@pytest.mark.parametrize(
    ("spec", "conditions", "start", "exit_code"),
    list(product(SPECS, CONDITIONS, STARTS, (None, 0, 3))),
)
def test_the_typed_status_is_what_the_document_converts_to(
    spec: JsonObject, conditions: list[JsonObject], start: JsonObject, exit_code: int | None
):
    document = {"spec": spec, "status": {"phase": "Pending", "conditions": conditions, **start}}
    pod = convert(Pod, document)
    now = whole_seconds(NOW_NS)
    if exit_code is None:
        written = kubelet_status.running(document, now=now, pod_ip="1", host_ip="2", restarts=0)
        typed = kubelet_status.running_status(pod, NOW_NS)
    else:
        written = kubelet_status.ended(document, now=now, exit_code=exit_code)
        typed = kubelet_status.ended_status(pod, NOW_NS, exit_code)
    status = merge_patch(document["status"], written)
    assert typed == convert(Pod, {**document, "status": status}).status
