"""kubectl commands against the embedded server, and their output."""

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

Kubectl = Any  # conftest.Kubectl
ROOT = Path(__file__).parents[2]
SHOP = ROOT / "tests" / "data" / "shop"

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: registry.example/web:v1
        resources: {requests: {cpu: 100m, memory: 64Mi}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
"""

HUGE = """
apiVersion: v1
kind: Pod
metadata: {name: huge}
spec:
  containers:
  - {name: main, image: huge, resources: {requests: {cpu: "64"}}}
"""


def rows(table: str) -> list[list[str]]:
    """The cells of a table, without its headers."""
    return [line.split() for line in table.splitlines()[1:]]


def test_nodes_and_api_resources(kubectl: Kubectl):
    table = kubectl("get nodes")
    assert table.splitlines()[0].split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert [row[:2] for row in rows(table)] == [[f"node-{index}", "Ready"] for index in range(4)]
    assert "172.18.0." in kubectl("get nodes -o wide")
    assert "Server Version: v1.36" in kubectl("version")
    assert "deployments" in kubectl("api-resources")
    assert "apps/v1" in kubectl("api-versions")
    assert kubectl("auth can-i create pods").strip() == "yes"
    assert "kubernetes-admin" in kubectl("auth whoami")
    assert "is running at https://127.0.0.1" in kubectl("cluster-info")
    assert "cpu:" in kubectl("describe node node-0")


def test_a_manifest_is_applied_seen_scaled_and_deleted(kubectl: Kubectl):
    assert kubectl("apply -f -", stdin=WEB).splitlines() == [
        "deployment.apps/web created",
        "service/web created",
    ]
    kubectl("rollout status deployment/web --timeout=300s")
    pods = rows(kubectl("get pods -o wide"))
    assert len(pods) == 3
    assert {row[2] for row in pods} == {"Running"}
    assert len({row[6] for row in pods}) == 3  # on different nodes
    assert rows(kubectl("get deployment web"))[0][1] == "3/3"
    assert rows(kubectl("get service web"))[0][4] == "80/TCP"

    described = kubectl(f"describe pod {pods[0][0]}")
    assert "Successfully assigned default/" in described
    assert "Started container main" in described
    assert "Controlled By:  ReplicaSet/web-" in described

    unchanged = kubectl("apply -f -", stdin=WEB).splitlines()
    assert unchanged == ["deployment.apps/web unchanged", "service/web unchanged"]
    changed = WEB.replace("web:v1", "web:v2")
    assert "deployment.apps/web configured" in kubectl("apply -f -", stdin=changed)
    kubectl("rollout status deployment/web --timeout=300s")
    assert "web:v2" in kubectl("get deployment web -o wide")
    assert "Scaled up replica set web-" in kubectl("describe deployment web")

    assert kubectl("scale deployment web --replicas=5").strip() == "deployment.apps/web scaled"
    kubectl("wait deployment/web --for=jsonpath={.status.readyReplicas}=5 --timeout=300s")
    kubectl("delete -f -", stdin=WEB)
    kubectl("wait pod -l app=web --for=delete --timeout=300s")
    assert kubectl("get all -o name").split() == ["service/kubernetes"]


def test_a_rollout_is_undone(kubectl: Kubectl):
    kubectl("create deployment web --image=nginx:1 --replicas=2")
    kubectl("rollout status deployment/web --timeout=300s")
    kubectl("set image deployment/web nginx=nginx:2")
    kubectl("rollout status deployment/web --timeout=300s")
    assert [row[0] for row in rows(kubectl("rollout history deployment/web"))[1:] if row] == [
        "1",
        "2",
    ]
    kubectl("rollout undo deployment/web")
    kubectl("rollout status deployment/web --timeout=300s")
    assert len(kubectl("get replicasets -o name").split()) == 2
    images = kubectl("get pods -o jsonpath={.items[*].spec.containers[0].image}")
    assert "nginx:1" in images
    kubectl("rollout restart deployment/web")
    kubectl("rollout status deployment/web --timeout=300s")


def test_a_pod_that_fits_on_no_node_has_a_message(kubectl: Kubectl):
    kubectl("apply -f -", stdin=HUGE)
    kubectl("wait pod/huge --for=condition=PodScheduled=False --timeout=300s")
    assert rows(kubectl("get pod huge"))[0][:3] == ["huge", "0/1", "Pending"]
    kubectl("wait event --for=create --field-selector=reason=FailedScheduling --timeout=300s")
    assert "0/4 nodes are available: 4 Insufficient cpu." in kubectl("describe pod huge")
    assert "FailedScheduling" in kubectl("get events")


def test_a_job_runs_to_its_end(kubectl: Kubectl):
    kubectl("create job short --image=busybox -- sleep 1")
    kubectl("wait job/short --for=condition=complete --timeout=300s")
    assert rows(kubectl("get job short"))[0][:3] == ["short", "Complete", "1/1"]
    assert rows(kubectl("get pods"))[0][2] == "Completed"
    assert "Job completed" in kubectl("describe job short")
    kubectl("delete job short")
    kubectl("wait pod -l job-name=short --for=delete --timeout=300s")


def test_nodes_are_cordoned_tainted_and_drained(kubectl: Kubectl):
    kubectl("create deployment web --image=nginx --replicas=4")
    kubectl("rollout status deployment/web --timeout=300s")
    kubectl("drain node-0 --timeout=300s")
    kubectl("taint node node-1 gpu=only:NoExecute")
    kubectl("rollout status deployment/web --timeout=300s")
    assert "SchedulingDisabled" in kubectl("get node node-0")
    placed = kubectl("get pods -o jsonpath={.items[*].spec.nodeName}").split()
    assert "node-0" not in placed
    kubectl("uncordon node-0")
    kubectl("label node node-0 disk=ssd")
    assert kubectl("get nodes -l disk=ssd -o name").split() == ["node/node-0"]


def test_a_node_has_a_lease_and_a_taint_evicts_its_pods(kubectl: Kubectl):
    assert "HolderIdentity:  node-0" in kubectl("describe node node-0")
    assert kubectl("get serviceaccount default -o name") == "serviceaccount/default\n"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"nodeName": "node-0", "containers": [{"name": "main", "image": "nginx"}]},
    }
    kubectl("apply -f -", stdin=json.dumps(pod))
    kubectl("wait pod/p --for=condition=Ready --timeout=300s")
    kubectl("taint node node-0 evil=yes:NoExecute")
    kubectl("wait pod/p --for=delete --timeout=300s")
    assert "Marking for deletion Pod default/p" in kubectl("get events")


def test_a_budget_delays_a_drain(kubectl: Kubectl):
    kubectl("create deployment web --image=nginx --replicas=1")
    kubectl("rollout status deployment/web --timeout=300s")
    kubectl("create poddisruptionbudget web --selector=app=web --min-available=1")
    kubectl("wait pdb/web --for=jsonpath={.status.currentHealthy}=1 --timeout=300s")
    node = kubectl("get pods -o jsonpath={.items[0].spec.nodeName}")
    assert "violate the pod's disruption budget" in kubectl.refuses(f"drain {node} --timeout=3s")


def test_a_namespace_deletes_its_content(kubectl: Kubectl):
    assert 'namespaces "shop" not found' in kubectl.refuses("run web --image=nginx -n shop")
    kubectl("create namespace shop")
    kubectl("run web --image=nginx -n shop")
    kubectl("wait pod/web -n shop --for=condition=Ready --timeout=300s")
    kubectl("delete namespace shop --timeout=300s")
    assert kubectl("get pods -A -o name") == ""
    assert 'namespaces "shop" not found' in kubectl.refuses("get namespace shop")


def test_server_side_apply_records_owners(kubectl: Kubectl):
    kubectl("apply --server-side -f -", stdin=WEB)
    kubectl("scale deployment web --replicas=5")
    refused = kubectl.refuses("apply --server-side -f -", stdin=WEB)
    assert ".spec.replicas" in refused
    kubectl("apply --server-side --force-conflicts -f -", stdin=WEB)
    assert kubectl("get deployment web -o jsonpath={.spec.replicas}") == "3"
    other = kubectl.refuses(
        "apply --server-side --field-manager=other -f -", stdin=WEB.replace("web:v1", "web:v2")
    )
    assert 'conflict with "kubectl"' in other


def test_dry_runs_differences_and_patches(kubectl: Kubectl):
    assert "(server dry run)" in kubectl("apply --dry-run=server -f -", stdin=WEB)
    assert kubectl("get deployments -o name") == ""
    kubectl("apply -f -", stdin=WEB)
    changed = WEB.replace("replicas: 3", "replicas: 4")
    difference = kubectl.run("diff", "-f", "-", stdin=changed)
    assert difference.returncode == 1
    assert "+  replicas: 4" in difference.stdout
    for kind, patch in (
        ("merge", '{"metadata":{"annotations":{"a":"1"}}}'),
        ("strategic", '{"metadata":{"annotations":{"b":"2"}}}'),
        ("json", '[{"op":"add","path":"/metadata/annotations/c","value":"3"}]'),
    ):
        done = kubectl.run("patch", "deployment", "web", f"--type={kind}", "-p", patch)
        assert done.returncode == 0, done.stderr
    annotations = json.loads(kubectl("get deployment web -o json"))["metadata"]["annotations"]
    assert [annotations[key] for key in "abc"] == ["1", "2", "3"]


def test_owners_may_orphan_their_pods(kubectl: Kubectl):
    kubectl("create deployment web --image=nginx --replicas=2")
    kubectl("rollout status deployment/web --timeout=300s")
    kubectl("delete deployment web --cascade=orphan")
    assert len(kubectl("get replicasets -o name").split()) == 1
    kubectl("delete replicasets --all --cascade=foreground --timeout=300s")
    assert kubectl("get pods -o name") == ""


def test_everything_kubectl_can_create_by_name(kubectl: Kubectl):
    for command in (
        "create configmap c --from-literal=a=b",
        "create secret generic s --from-literal=a=b",
        "create serviceaccount sa",
        "create service clusterip svc --tcp=80:8080",
        "create priorityclass urgent --value=1000 --description=now",
        "create cronjob nightly --image=busybox --schedule=@daily -- date",
        "run urgent --image=nginx --port=80 --env=A=B --labels=app=urgent",
        "create deployment web --image=nginx --replicas=2 --port=80",
        "expose deployment web",
        "create poddisruptionbudget web --selector=app=web --max-unavailable=50%",
    ):
        kubectl(command)
    assert kubectl("get configmap c -o jsonpath={.data.a}") == "b"
    assert kubectl("get secret s -o jsonpath={.data.a}") == "Yg=="
    assert kubectl("get service svc -o jsonpath={.spec.ports[0].targetPort}") == "8080"
    assert kubectl("get priorityclass urgent -o jsonpath={.value}") == "1000"
    assert kubectl("get pod urgent -o jsonpath={.spec.containers[0].env[0].value}") == "B"
    assert kubectl("get cronjob nightly -o jsonpath={.spec.schedule}") == "@daily"
    assert kubectl("get pdb web -o jsonpath={.spec.maxUnavailable}") == "50%"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        pytest.param("get pod nobody", 'pods "nobody" not found', id="missing"),
        pytest.param("get widgets", "the server doesn't have a resource type", id="unknown-kind"),
        pytest.param("create -f -", "is invalid: spec.containers: Required value", id="invalid"),
        pytest.param("delete namespace default", "may not be deleted", id="forbidden"),
        pytest.param("logs web", 'pods "web" not found', id="no-pod-no-logs"),
    ],
)
def test_errors_are_those_of_any_cluster(kubectl: Kubectl, command: str, text: str):
    stdin = "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: []}}"
    assert text in kubectl.refuses(command, stdin=stdin)


def test_there_are_no_logs(kubectl: Kubectl):
    kubectl("run web --image=nginx")
    kubectl("wait pod/web --for=condition=Ready --timeout=300s")
    assert "run no containers" in kubectl.refuses("logs web")


def test_a_stateful_set_and_its_volumes(kubectl: Kubectl):
    manifest = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: db}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
    kubectl("apply -f -", stdin=manifest)
    kubectl("rollout status statefulset/db --timeout=300s")
    assert [row[0] for row in rows(kubectl("get pods"))] == ["db-0", "db-1"]
    claims = rows(kubectl("get persistentvolumeclaims"))
    assert [row[:2] for row in claims] == [["data-db-0", "Bound"], ["data-db-1", "Bound"]]


def test_ordinary_manifests_are_applied_and_deleted(kubectl: Kubectl):
    assert "created" in kubectl(f"apply -f {SHOP / 'crds'}")
    kubectl("wait crd/backups.shop.example.com --for=condition=Established --timeout=300s")
    lines = kubectl(f"apply -f {SHOP}").splitlines()
    assert len(lines) == 29
    assert all(line.endswith(" created") for line in lines), lines
    kubectl("rollout status -n shop deployment/web --timeout=300s")
    shown = kubectl("get all -A")
    for text in ("pod/web-", "horizontalpodautoscaler.autoscaling/web", "backup.shop.example.com"):
        assert text in shown
    assert rows(kubectl("get bk -n shop"))[0][:7] == ["nightly", "0", "2", "*", "*", "*", "7"]
    again = kubectl(f"apply --server-side --force-conflicts -f {SHOP}")
    assert again.count("serverside-applied") == 29
    kubectl("delete namespace shop --timeout=300s")
    kubectl(f"delete -f {SHOP / 'crds'} --timeout=300s")
    assert "backups" not in kubectl("api-resources")


def test_the_own_manifests_are_applied(kubectl: Kubectl):
    lines = kubectl(f"apply -k {ROOT / 'deploy' / 'base'}").splitlines()
    assert "clusterrole.rbac.authorization.k8s.io/kubestow created" in lines
    assert all(line.endswith(" created") for line in lines), lines
    kubectl(f"delete -k {ROOT / 'deploy' / 'base'} --ignore-not-found --timeout=300s")


def test_wrong_and_unknown_fields(kubectl: Kubectl):
    quoted = WEB.replace("replicas: 3", 'replicas: "3"')
    refused = kubectl.refuses("apply -f -", stdin=quoted)
    assert "cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas" in refused
    misspelt = HUGE.replace("containers:", "nodeSelectr: {}\n  containers:")
    refused = kubectl.refuses("apply -f -", stdin=misspelt)
    assert 'strict decoding error: unknown field "spec.nodeSelectr"' in refused
    nothing = "apiVersion: v1\nkind: Pod\nmetadata: {name: empty}\nspec: {containers: []}"
    refused = kubectl.refuses("apply -f -", stdin=nothing)
    assert 'The Pod "empty" is invalid: spec.containers: Required value' in refused


def test_explain_tokens_and_permissions(kubectl: Kubectl):
    assert "containers" in kubectl("explain pod.spec")
    assert "replicas" in kubectl("explain deployment --recursive")
    kubectl("create serviceaccount bot")
    token = kubectl("create token bot").strip()
    assert token.count(".") == 2
    refused = kubectl.refuses(f"get pods --token={token}")
    assert 'User "system:serviceaccount:default:bot" cannot list resource "pods"' in refused
    kubectl("create role reader --verb=list --resource=pods")
    kubectl("create rolebinding bot --role=reader --serviceaccount=default:bot")
    kubectl(f"get pods --token={token}")
    assert "readyz check passed" in kubectl("get --raw /readyz?verbose")


def test_a_pod_is_debugged(kubectl: Kubectl):
    kubectl("run target --image=nginx")
    kubectl("debug target --image=busybox --container=debugger --attach=false")
    assert "debugger" in kubectl("get pod target -o jsonpath={.spec.ephemeralContainers[*].name}")
