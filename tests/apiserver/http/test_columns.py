"""The columns of each kind in `kubectl get`."""

from typing import Any

import pytest

from kubestow.apiserver.http.cells import selector_text
from kubestow.apiserver.http.columns import columns_of
from kubestow.apiserver.http.table import table
from kubestow.apiserver.served import ServedResource, ServedTable
from kubestow.cluster.resources import default_resources

SERVED = list(ServedTable(default_resources()))
NOW_NS = 1_700_000_000_000_000_000
CREATED = {"creationTimestamp": "2023-11-14T22:13:10Z"}  # ten seconds ago


def row(name: str, document: dict[str, Any], *, is_wide: bool = False) -> dict[str, Any]:
    """Cells by column, of those that are shown."""
    resources = {served.resource.qualified_name: served for served in SERVED}
    columns = columns_of(resources[name])
    document = {**document, "metadata": {"name": "x", **CREATED, **document.get("metadata", {})}}
    made = table(columns, [document], now_ns=NOW_NS)
    return {
        definition["name"]: cell
        for definition, cell in zip(
            made["columnDefinitions"], made["rows"][0]["cells"], strict=True
        )
        if is_wide or not definition["priority"]
    }


def status(ready: bool = True, restarts: int = 0, **state: Any) -> dict[str, Any]:
    return {"name": "a", "ready": ready, "restartCount": restarts, "state": state}


RUNNING = status(running={})


@pytest.mark.parametrize(
    ("pod_status", "metadata", "ready", "text"),
    [
        pytest.param({"phase": "Pending"}, {}, "0/1", "Pending", id="waits"),
        pytest.param(
            {"phase": "Running", "containerStatuses": [RUNNING]}, {}, "1/1", "Running", id="runs"
        ),
        pytest.param(
            {
                "phase": "Pending",
                "containerStatuses": [status(False, waiting={"reason": "ContainerCreating"})],
            },
            {},
            "0/1",
            "ContainerCreating",
            id="is-made",
        ),
        pytest.param(
            {
                "phase": "Succeeded",
                "containerStatuses": [status(False, terminated={"reason": "Completed"})],
            },
            {},
            "0/1",
            "Completed",
            id="is-done",
        ),
        pytest.param(
            {
                "phase": "Failed",
                "containerStatuses": [status(False, terminated={"exitCode": 3})],
            },
            {},
            "0/1",
            "ExitCode:3",
            id="failed",
        ),
        pytest.param(
            {
                "phase": "Failed",
                "containerStatuses": [status(False, terminated={"signal": 9})],
            },
            {},
            "0/1",
            "Signal:9",
            id="was-killed",
        ),
        pytest.param({"phase": "Failed", "reason": "Evicted"}, {}, "0/1", "Evicted", id="evicted"),
        pytest.param(
            {"phase": "Running", "containerStatuses": [RUNNING]},
            {"deletionTimestamp": "2023-11-14T22:13:10Z"},
            "1/1",
            "Terminating",
            id="ends",
        ),
        pytest.param(
            {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}],
            },
            {},
            "0/1",
            "SchedulingGated",
            id="gated",
        ),
        pytest.param(
            {"phase": "Pending", "initContainerStatuses": [status(False, running={})]},
            {},
            "0/1",
            "Init:0/1",
            id="initialises",
        ),
        pytest.param(
            {
                "phase": "Pending",
                "initContainerStatuses": [status(False, terminated={"exitCode": 1})],
            },
            {},
            "0/1",
            "Init:ExitCode:1",
            id="failed-to-initialise",
        ),
        pytest.param(
            {
                "phase": "Pending",
                "initContainerStatuses": [status(False, waiting={"reason": "ErrImagePull"})],
            },
            {},
            "0/1",
            "Init:ErrImagePull",
            id="cannot-initialise",
        ),
    ],
)
def test_the_status_of_a_pod_is_one_word(
    pod_status: dict[str, Any], metadata: dict[str, Any], ready: str, text: str
):
    spec = {"containers": [{"name": "a"}], "initContainers": [{"name": "i"}]}
    if "initContainerStatuses" not in pod_status:
        del spec["initContainers"]
    shown = row("pods", {"metadata": metadata, "spec": spec, "status": pod_status})
    assert (shown["Ready"], shown["Status"], shown["Age"]) == (ready, text, "10s")


def test_a_sidecar_counts_as_a_container():
    spec = {
        "containers": [{"name": "a"}],
        "initContainers": [{"name": "side", "restartPolicy": "Always"}],
    }
    sidecar = {**RUNNING, "name": "side", "started": True}
    pod_status = {
        "phase": "Running",
        "containerStatuses": [RUNNING],
        "initContainerStatuses": [sidecar],
    }
    shown = row("pods", {"spec": spec, "status": pod_status})
    assert (shown["Ready"], shown["Status"]) == ("2/2", "Running")


def test_restarts_have_a_time():
    last = {"lastState": {"terminated": {"finishedAt": "2023-11-14T22:08:20Z"}}}
    restarted = {**status(restarts=3, running={}), **last}
    shown = row("pods", {"status": {"containerStatuses": [restarted]}})
    assert shown["Restarts"] == "3 (5m ago)"


def test_a_completed_container_beside_a_running_one():
    done = status(False, terminated={"reason": "Completed"})
    ready = [{"type": "Ready", "status": "True"}]
    containers = {"containerStatuses": [done, RUNNING]}
    assert row("pods", {"status": {**containers, "conditions": ready}})["Status"] == "Running"
    assert row("pods", {"status": containers})["Status"] == "NotReady"


@pytest.mark.parametrize(
    ("resource", "document", "expected"),
    [
        pytest.param(
            "nodes",
            {
                "metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}},
                "spec": {"unschedulable": True},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "nodeInfo": {"kubeletVersion": "v1.36.0"},
                },
            },
            {
                "Status": "Ready,SchedulingDisabled",
                "Roles": "control-plane",
                "Version": "v1.36.0",
                "Internal-IP": "<none>",
                "OS-Image": "<unknown>",
            },
            id="node",
        ),
        pytest.param("nodes", {}, {"Status": "Unknown", "Roles": "<none>"}, id="node-unheard-of"),
        pytest.param(
            "deployments.apps",
            {
                "spec": {
                    "replicas": 3,
                    "selector": {"matchLabels": {"b": "2", "a": "1"}},
                    "template": {"spec": {"containers": [{"name": "c", "image": "i:1"}]}},
                },
                "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 2},
            },
            {
                "Ready": "2/3",
                "Up-to-date": 3,
                "Available": 2,
                "Containers": "c",
                "Images": "i:1",
                "Selector": "a=1,b=2",
            },
            id="deployment",
        ),
        pytest.param(
            "replicasets.apps",
            {"spec": {"replicas": 3}, "status": {"replicas": 2}},
            {"Desired": 3, "Current": 2, "Ready": 0},
            id="replica-set",
        ),
        pytest.param(
            "jobs.batch",
            {
                "spec": {"completions": 3},
                "status": {"succeeded": 1, "startTime": "2023-11-14T22:13:00Z"},
            },
            {"Status": "Running", "Completions": "1/3", "Duration": "20s"},
            id="job",
        ),
        pytest.param(
            "jobs.batch",
            {
                "spec": {"parallelism": 2},
                "status": {
                    "conditions": [{"type": "Complete", "status": "True"}],
                    "startTime": "2023-11-14T22:13:00Z",
                    "completionTime": "2023-11-14T22:13:07Z",
                },
            },
            {"Status": "Complete", "Completions": "0/1 of 2", "Duration": "7s"},
            id="job-that-is-a-queue",
        ),
        pytest.param(
            "services",
            {
                "spec": {
                    "type": "NodePort",
                    "clusterIP": "10.96.0.1",
                    "ports": [{"port": 80, "nodePort": 30080}, {"port": 53, "protocol": "UDP"}],
                    "selector": {"app": "web"},
                }
            },
            {"Port(s)": "80:30080/TCP,53/UDP", "External-IP": "<none>", "Selector": "app=web"},
            id="service",
        ),
        pytest.param(
            "services",
            {"spec": {"type": "LoadBalancer"}},
            {"External-IP": "<pending>"},
            id="service-without-balancer",
        ),
        pytest.param(
            "persistentvolumes",
            {
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
                    "claimRef": {"namespace": "ns", "name": "c"},
                },
                "status": {"phase": "Bound"},
            },
            {"Capacity": "1Gi", "Access Modes": "RWO,ROX", "Claim": "ns/c", "Status": "Bound"},
            id="volume",
        ),
        pytest.param(
            "storageclasses.storage.k8s.io",
            {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}},
            {"Name": "x (default)", "AllowVolumeExpansion": False},
            id="default-class",
        ),
        pytest.param(
            "poddisruptionbudgets.policy",
            {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 2}},
            {"Min Available": "50%", "Max Unavailable": "N/A", "Allowed Disruptions": 2},
            id="budget",
        ),
        pytest.param(
            "priorityclasses.scheduling.k8s.io",
            {"value": 1000, "globalDefault": True},
            {"Value": 1000, "Global-Default": True},
            id="priority-class",
        ),
        pytest.param(
            "events.events.k8s.io",
            {
                "type": "Warning",
                "reason": "FailedScheduling",
                "regarding": {"kind": "Pod", "name": "web-1"},
                "note": "0/3 nodes are available ",
                "eventTime": "2023-11-14T22:12:20.123456Z",
                "reportingController": "default-scheduler",
            },
            {
                "Last Seen": "59s",
                "Object": "pod/web-1",
                "Message": "0/3 nodes are available",
                "Source": "default-scheduler",
                "Count": 1,
            },
            id="event",
        ),
        pytest.param(
            "resourceclaims.resource.k8s.io",
            {"status": {"allocation": {}, "reservedFor": [{"name": "p"}]}},
            {"State": "allocated,reserved"},
            id="claim",
        ),
        pytest.param("configmaps", {"data": {"a": "1", "b": "2"}}, {"Data": 2}, id="config-map"),
        pytest.param("serviceaccounts", {}, {"Name": "x", "Age": "10s"}, id="any-other"),
    ],
)
def test_a_kind_has_the_columns_of_kubectl(
    resource: str, document: dict[str, Any], expected: dict[str, Any]
):
    shown = row(resource, document, is_wide=True)
    assert {name: shown[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("name", "document", "expected"),
    [
        pytest.param(
            "ingresses.networking.k8s.io",
            {
                "spec": {
                    "ingressClassName": "public",
                    "rules": [{"host": f"h{number}"} for number in range(5)],
                    "tls": [{}],
                },
                "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
            },
            ["x", "public", "h0,h1,h2 + 2 more...", "192.0.2.1", "80, 443", "10s"],
            id="ingress",
        ),
        pytest.param(
            "networkpolicies.networking.k8s.io",
            {"spec": {"podSelector": {"matchLabels": {"a": "b"}}}},
            ["x", "a=b", "10s"],
            id="network-policy",
        ),
        pytest.param(
            "endpointslices.discovery.k8s.io",
            {
                "addressType": "IPv4",
                "ports": [{"port": 80}, {"name": "sql"}, {}],
                "endpoints": [{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"]}],
            },
            ["x", "IPv4", "80,sql,*", "10.0.0.1,10.0.0.2", "10s"],
            id="endpoint-slice",
        ),
        pytest.param(
            "endpoints",
            {"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]},
            ["x", "10.0.0.1:80", "10s"],
            id="endpoints",
        ),
        pytest.param(
            "horizontalpodautoscalers.autoscaling",
            {
                "spec": {
                    "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                    "minReplicas": 2,
                    "maxReplicas": 5,
                    "metrics": [
                        {
                            "type": "Resource",
                            "resource": {"name": "cpu", "target": {"averageUtilization": 70}},
                        },
                        {"type": "Pods", "pods": {"target": {"averageValue": "1k"}}},
                        {"type": "External", "external": {"target": {"value": "30"}}},
                    ],
                },
                "status": {
                    "currentReplicas": 3,
                    "currentMetrics": [{"resource": {"current": {"averageUtilization": 20}}}],
                },
            },
            ["x", "Deployment/web", "cpu: 20%/70%, <unknown>/1k + 1 more...", "2", 5, 3, "10s"],
            id="autoscaler",
        ),
        pytest.param(
            "rolebindings.rbac.authorization.k8s.io",
            {"roleRef": {"kind": "Role", "name": "r"}},
            ["x", "Role/r", "10s"],
            id="role-binding",
        ),
        pytest.param(
            "roles.rbac.authorization.k8s.io", {}, ["x", "2023-11-14T22:13:10Z"], id="role"
        ),
        pytest.param(
            "resourcequotas",
            {"status": {"hard": {"pods": "3", "limits.cpu": "4"}, "used": {"pods": "1"}}},
            ["x", "pods: 1/3", "limits.cpu: 0/4", "10s"],
            id="quota",
        ),
        pytest.param(
            "certificatesigningrequests.certificates.k8s.io",
            {
                "spec": {"signerName": "s", "username": "u", "expirationSeconds": 3600},
                "status": {"conditions": [{"type": "Approved"}], "certificate": "eA=="},
            },
            ["x", "10s", "s", "u", "60m", "Approved,Issued"],
            id="certificate-request",
        ),
        pytest.param(
            "validatingwebhookconfigurations.admissionregistration.k8s.io",
            {"webhooks": [{}, {}]},
            ["x", 2, "10s"],
            id="webhooks",
        ),
        pytest.param(
            "podgroups.scheduling.k8s.io",
            {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}},
            ["x", "Gang", "<none>", "Pending", "10s"],
            id="pod-group",
        ),
    ],
)
def test_kinds_that_the_scheduler_does_not_read(
    name: str, document: dict[str, Any], expected: list[Any]
):
    assert list(row(name, document).values()) == expected


@pytest.mark.parametrize("served", SERVED, ids=lambda served: served.resource.qualified_name)
def test_every_kind_can_be_shown_with_nothing_in_it(served: ServedResource):
    empty = {"metadata": {"name": "x"}}
    made = table(columns_of(served), [empty], now_ns=NOW_NS)
    assert "x" in made["rows"][0]["cells"]
    assert [definition["format"] for definition in made["columnDefinitions"]].count("name") == 1


def test_a_selector_is_written_as_in_a_query():
    expressions = [
        {"key": "a", "operator": "In", "values": ["x", "y"]},
        {"key": "b", "operator": "NotIn", "values": ["z"]},
        {"key": "c", "operator": "Exists"},
        {"key": "d", "operator": "DoesNotExist"},
    ]
    selector = {"matchLabels": {"app": "web"}, "matchExpressions": expressions}
    assert selector_text(selector) == "app=web,a in (x,y),b notin (z),c,!d"
    assert selector_text(None) == "<none>"
