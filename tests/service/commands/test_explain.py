"""`kubestow explain` on the command line: sources, formats, and what cannot be explained."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from kubestow.cluster.http.kubeconfig import ServerConfig
from kubestow.cluster.http.session import ApiSession
from kubestow.errors import ApiError, InputError, KubestowError
from kubestow.service.cli import app
from kubestow.service.commands.explain.live import kept_explanation
from kubestow.testing.clock import ManualClock
from tools.https_cluster import HttpsCluster

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: small}
status: {allocatable: {cpu: "2", memory: 4Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: large}
spec: {taints: [{key: team, value: db, effect: NoSchedule}]}
status: {allocatable: {cpu: "8", memory: 16Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "4"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: low, namespace: shop}
spec:
  nodeName: small
  containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: fits}
spec:
  containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]
  tolerations: [{operator: Exists}]
---
apiVersion: v1
kind: Pod
metadata: {name: fits, namespace: shop}
spec: {containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: foreign}
spec: {schedulerName: other, containers: [{name: c, image: i}]}
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER)
    return str(file)


def explain(*arguments: str) -> tuple[int, str]:
    """The exit code and the output; an error that a user can correct is its text."""
    result = CliRunner().invoke(app, ["explain", *arguments])
    if isinstance(result.exception, KubestowError):
        return 2, str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout


def test_load_aware_without_measurements_is_warned_of(path: str) -> None:
    config = str(Path(__file__).parents[3] / "examples/load_aware/load_aware.conf")
    for asked in (("web",), ("--all",)):
        result = CliRunner().invoke(app, ["explain", *asked, "-f", path, "--config", config])
        assert result.exit_code == 0
        assert "LoadAware takes no part: nothing is measured here" in result.stderr
        without = CliRunner().invoke(app, ["explain", *asked, "-f", path])
        assert "LoadAware" not in without.stderr


# --- formats ---


def test_a_pending_pod_in_words(path: str) -> None:
    code, output = explain("web", "-f", path)
    assert code == 0
    assert output.startswith("Pod default/web: Unschedulable\n  fits none of 2 nodes\n")
    for text in (
        "Nodes that do not fit",
        "      1   NodeResourcesFit   Insufficient cpu                   cannot     small",
        "      1   TaintToleration    node(s) had untolerated taint(s)   cannot     large",
        "Preemption\n  evicting pods cannot help on 2 nodes\n",
        "Tried again after a change of\n  Node, Pod (TaintToleration)\n",
        "What would make it fit\n  1. tolerate the taint team=db:NoSchedule",
    ):
        assert text in output
    # Commands are copied, and never wrapped.
    lines = [line for line in output.splitlines() if not line.startswith("     $ kubectl ")]
    assert len(lines) < len(output.splitlines())
    assert all(len(line) <= 100 for line in lines)
    _, without = explain("web", "-f", path, "--no-suggestions")
    assert "What would make it fit" not in without


def test_a_pod_that_fits_in_words(path: str) -> None:
    code, output = explain("default/fits", "-f", path)
    assert code == 0
    assert output.startswith("Pod default/fits: Scheduled on large\n")
    assert "Ranking of 2 nodes that fit\n  NODE    TOTAL   " in output
    assert "compared with small: NodeResourcesFit +" in output
    _, wide = explain("default/fits", "-f", path, "-o", "wide")
    assert " x 3 = 300" in wide


def test_one_node_with_every_filter(path: str) -> None:
    code, output = explain("web", "-f", path, "--node", "large")
    assert code == 0
    assert "Node large: Rejected\n  FILTER " in output
    assert "  TaintToleration        Rejected   cannot " in output
    assert "  NodeResourcesFit       Passed" in output


def test_a_pod_that_is_not_tried_has_no_nodes(path: str) -> None:
    code, output = explain("foreign", "-f", path, "--node", "large")
    assert code == 1
    assert output.startswith("Pod default/foreign: Excluded\n")


@pytest.mark.parametrize("read", [("json", json.loads), ("yaml", yaml.safe_load)])
def test_data_has_the_fields_of_the_reference(path: str, read: tuple[str, object]) -> None:
    form, load = read
    _, output = explain("web", "-f", path, "-o", form)
    found = load(output)  # type: ignore[operator]
    assert found["pod"]["name"] == "web"
    assert found["outcome"] == "Unschedulable"
    assert [reason["reasonCode"] for reason in found["reasons"]] == [
        "InsufficientCPU",
        "TaintNotTolerated",
    ]
    first = found["suggestions"][0]
    assert set(first) == {
        "kind",
        "text",
        "patches",
        "node",
        "verified",
        "commands",
        "effect",
    }
    assert first["patches"][0]["kind"] == "Pod"


def test_annotations_are_an_object_of_texts(path: str) -> None:
    _, output = explain("web", "-f", path, "-o", "annotations")
    found = json.loads(output)
    assert "kube-scheduler-simulator.sigs.k8s.io/filter-result" in found
    assert all(isinstance(value, str) for value in found.values())


# --- what cannot be explained ---


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        pytest.param(["nothing"], 2, 'there is no pod "nothing"', id="no-such-pod"),
        pytest.param(
            ["fits"],
            2,
            '2 pods are named "fits", in the namespaces default, shop; choose one with -n',
            id="several",
        ),
        pytest.param(
            ["web", "-n", "shop"],
            2,
            'there is no pod "web" in namespace "shop"; there is one in default',
            id="other-namespace",
        ),
        pytest.param(
            ["we"], 2, 'there is no pod "we"; there is default/web', id="beginning-of-a-name"
        ),
        pytest.param(
            ["web", "--node", "x"],
            2,
            'there is no node "x"; there is large, small',
            id="no-such-node",
        ),
        pytest.param(
            ["a/b/c"], 2, '"a/b/c" is not the name of a pod, nor NAMESPACE/NAME', id="odd-name"
        ),
        pytest.param(
            ["shop/low", "-n", "default"],
            2,
            'pod "shop/low" names another namespace than --namespace default',
            id="two-namespaces",
        ),
        pytest.param(
            ["foreign"],
            1,
            "Pod default/foreign: Excluded\n"
            '  no profile has the pod\'s schedulerName "other"; there is "default-scheduler"\n',
            id="another-scheduler",
        ),
        pytest.param(
            ["web", "--context", "x"],
            2,
            "-f is a cluster from files; leave out --kubeconfig and --context",
            id="two-sources",
        ),
        pytest.param(["web", "--shape", "cpu"], 2, '"cpu" is not NAME=VALUE', id="odd-shape"),
        pytest.param(
            ["web", "--from", "https://x"],
            2,
            "--from is what a running scheduler has kept; leave out -f, --node",
            id="from-and-files",
        ),
        pytest.param(
            ["web", "--insecure-skip-tls-verify"],
            2,
            "--insecure-skip-tls-verify is for --from",
            id="nothing-to-verify",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(
    path: str, arguments: Sequence[str], code: int, text: str
) -> None:
    found_code, output = explain(*arguments, "-f", path)
    assert found_code == code
    assert text in output
    assert output.count("\n") <= 2


def test_a_misspelt_field_is_warned_of(path: str) -> None:
    text = Path(path).read_text().replace("schedulerName: other", "nodeSelectr: {a: b}")
    Path(path).write_text(text)
    result = CliRunner().invoke(app, ["explain", "foreign", "-f", path])
    assert 'unknown field "spec.nodeSelectr" (did you mean "nodeSelector"?)' in result.stderr
    assert result.stdout.startswith("Pod default/foreign: Scheduled")


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text("kind: [")
    code, output = explain("web", "-f", str(file))
    assert code == 2
    assert "broken.yaml" in output


def test_without_a_cluster_it_says_how_to_name_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    code, output = explain("web")
    assert code == 2
    assert output == (
        "there is no kubeconfig: neither $KUBECONFIG nor ~/.kube/config; name one with "
        "--kubeconfig, or give files with -f"
    )


# --- a live cluster ---


async def served(folder: Path, *arguments: str, token: str = "") -> tuple[int, str]:
    """Explain on a cluster behind HTTPS; the command runs in a thread of its own."""
    cluster = HttpsCluster(folder)
    cluster.store.load(list(yaml.safe_load_all(CLUSTER)))
    version = cluster.store.list(cluster.store.resources.named("pods")).version
    async with cluster.serving():
        if token:
            text = cluster.kubeconfig.read_text()
            cluster.kubeconfig.write_text(text.replace("let-me-in", token))
        kubeconfig = str(cluster.kubeconfig)
        found = await asyncio.to_thread(explain, *arguments, "--kubeconfig", kubeconfig)
    assert cluster.store.list(cluster.store.resources.named("pods")).version == version
    return found


def test_a_live_cluster_is_read_and_not_written(tmp_path: Path) -> None:
    code, output = asyncio.run(served(tmp_path, "web"))
    assert code == 0
    assert output.startswith("Pod default/web: Unschedulable\n")


def test_the_namespace_is_that_of_the_context(tmp_path: Path) -> None:
    code, output = asyncio.run(served(tmp_path, "low"))
    assert code == 2
    assert output == ('there is no pod "low" in namespace "default"; there is one in shop')


def test_a_server_that_refuses_is_named(tmp_path: Path) -> None:
    code, output = asyncio.run(served(tmp_path, "web", token="wrong"))
    assert code == 2
    assert "Unauthorized" in output


# --- after simulate ---

SIX = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
"""


def test_a_pod_is_explained_as_simulate_placed_it(tmp_path: Path) -> None:
    file = tmp_path / "six.yaml"
    file.write_text(SIX)
    simulated = CliRunner().invoke(app, ["simulate", "-f", str(file), "-o", "json"])
    outcomes = {pod["name"]: pod for pod in json.loads(simulated.stdout)["pods"]}
    assert [pod["outcome"] for pod in outcomes.values()].count("Pending") == 2
    for name, pod in outcomes.items():
        result = CliRunner().invoke(app, ["explain", name, "-f", str(file), "-o", "json"])
        told = json.loads(result.stdout)
        assert told["node"] == pod["node"]
        assert told["message"] == pod["message"]
        if name.endswith("-4"):
            assert result.stderr == (
                "placed first: 4 of 5 other pods that wait; --alone leaves them out\n"
            )
    last = list(outcomes)[-1]
    assert explain(last, "-f", str(file), "--alone")[1].startswith(
        f"Pod default/{last}: Scheduled on n1\n"
    )


def test_alone_is_for_files() -> None:
    code, output = explain("web", "--alone")
    assert code == 2
    assert output.startswith("--alone is for pods of files")


def test_names_that_are_close_are_said(path: str, tmp_path: Path) -> None:
    assert explain("forein", "-f", path)[1] == 'there is no pod "forein"; there is default/foreign'
    file = tmp_path / "apps.yaml"
    file.write_text(
        Path(workload(tmp_path)).read_text().replace('"name": "web"', '"name": "website"')
    )
    _, output = explain("deploy/webstie", "-f", path, "-f", str(file))
    assert output == 'there is no pod of "deploy/webstie"; there is website'


@pytest.mark.parametrize("asked", ["web", "deploy/web"])
def test_a_pod_that_is_refused_says_why(path: str, tmp_path: Path, asked: str) -> None:
    file = tmp_path / "refused.yaml"
    template = {
        "spec": {"priorityClassName": "golden", "containers": [{"name": "c", "image": "i"}]}
    }
    labels = {"app": "web"}
    refused = {
        "web": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "gold"}, **template},
        "deploy/web": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "gold"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, **template},
            },
        },
    }[asked]
    known = {"kind": "PriorityClass", "metadata": {"name": "goldan"}, "value": 70}
    known["apiVersion"] = "scheduling.k8s.io/v1"
    file.write_text(yaml.safe_dump_all([refused, known]))
    code, output = explain(asked.replace("web", "gold"), "-f", path, "-f", str(file))
    assert code == 2
    assert "cannot be made: " in output
    assert output.endswith(
        "no PriorityClass with name golden was found; there is goldan; it is made with: kubectl "
        "create priorityclass golden --value=70"
    )


# --- many pods ---


@pytest.mark.parametrize("asked", [("--all",), ("-l", "app=web"), ("--all", "-n", "default")])
def test_many_pods_are_grouped(path: str, tmp_path: Path, asked: tuple[str, ...]) -> None:
    code, output = explain(*asked, "-f", path, "-f", workload(tmp_path))
    assert code == 0
    assert "Why they wait\n" in output
    assert "of Deployment default/web (3)" in output
    assert "What helps most of them, all placed together\n  1. " in output


def test_a_workload_is_named_as_for_kubectl(path: str, tmp_path: Path) -> None:
    files = ("-f", path, "-f", workload(tmp_path))
    for name in ("deploy/web", "Deployment/web"):
        _, output = explain(name, *files, "-o", "json")
        found = json.loads(output)
        assert (found["waiting"], found["fitting"]) == (3, 0)
    _, changed = explain("deploy/web", *files, "--add-nodes", "3", "--like", "small", "-o", "json")
    assert json.loads(changed)["causes"][0]["count"] == 3


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        pytest.param(("deploy/nope",), 'there is no pod of "deploy/nope"', id="no-workload"),
        pytest.param(("-l", "a=b"), 'there is no pod of labels "a=b"', id="no-labels"),
        pytest.param(("web", "--all"), "give one of a name, --selector and --all", id="two"),
        pytest.param(("--all", "--node", "n"), "--node is for one pod", id="node"),
        pytest.param((), "name a pod, a workload such as deploy/web", id="nothing"),
    ],
)
def test_what_cannot_be_asked_of_many(path: str, arguments: tuple[str, ...], error: str) -> None:
    code, output = explain(*arguments, "-f", path)
    assert code == 2
    assert output.startswith(error)


def workload(folder: Path) -> str:
    """A file with a Deployment whose pods fit nowhere."""
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "containers": [
                {"name": "main", "image": "x", "resources": {"requests": {"cpu": "900"}}}
            ]
        },
    }
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    file = folder / "workload.json"
    file.write_text(json.dumps({**document, "spec": spec}))
    return str(file)


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ('forbidden: User "system:anonymous" cannot get path', "--authentication-kubeconfig and"),
        ("its certificate is not accepted: self-signed", "--insecure-skip-tls-verify"),
        ('forbidden: User "bob" cannot get path', ""),
    ],
)
def test_a_scheduler_that_was_started_by_hand_is_explained(
    error: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object) -> bytes:
        raise ApiError(error)

    monkeypatch.setattr(ApiSession, "request", refused)
    with pytest.raises(InputError) as caught:
        kept_explanation(ServerConfig(server="https://10.0.0.7:10259"), ("a", "b"), ManualClock())
    text = str(caught.value)
    assert text.startswith(f"the scheduler at 10.0.0.7:10259: {error}")
    assert advice in text
    assert text.endswith(error) is not bool(advice)
