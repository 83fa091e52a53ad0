"""What the forms of the page do to the cluster, and what they answer to wrong input."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import value_at
from kubestow.cluster.resources import NODES, PODS
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import ApiError, InputError, NotFoundError
from kubestow.simulator.defaults import NODE_COUNT
from kubestow.simulator.kubelet_switch import is_stopped
from kubestow.simulator.live.actions import ADDED_MAX, ClusterActions
from kubestow.simulator.live.templates import SHAPES, TEMPLATES
from kubestow.simulator.live.time_control import PacedTime, TimeActions
from kubestow.simulator.live.workload import LivingWorkload, first_nodes, first_objects, size_for
from kubestow.simulator.paced_time import UNLIMITED, PacedLoop
from kubestow.simulator.served import ServedCluster, ServedOptions
from kubestow.simulator.virtual_time import VirtualClock

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec: {containers: [{name: main, image: i}]}
"""
BUDGET = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: all, namespace: demo}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
"""


class Demo:
    def __init__(self, *, has_workload: bool, node_count: int = NODE_COUNT) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, PacedLoop)
        self.loop = loop
        self.clock = VirtualClock(loop)
        nodes = first_nodes(node_count)
        self.size = size_for(nodes)
        own = [*nodes, *(first_objects(self.size) if has_workload else ())]
        self.cluster = ServedCluster(
            ServedOptions(nodes=0),
            self.clock,
            config=SchedulerConfig(),
            documents=[Document(one, "built-in") for one in own],
        )
        self.store = self.cluster.store
        self.time = PacedTime(loop)
        self.load_count = 0
        self.actions = ClusterActions(
            self.store, self.clock, time=self.time, before_load=self._before_load
        )

    def _before_load(self) -> None:
        self.load_count += 1

    async def act(self, action: str, /, **body: object) -> JsonObject:
        return await self.actions.perform(action, dict(body))

    async def refusal(self, action: str, /, **body: object) -> InputError:
        with pytest.raises(InputError) as caught:
            await self.act(action, **body)
        return caught.value

    def node(self, name: str) -> JsonObject:
        return self.store.get(NODES, "", name).document

    def pods(self, namespace: str = "demo") -> list[JsonObject]:
        found = [pod.document for pod in self.store.objects_of(PODS)]
        return [pod for pod in found if pod["metadata"]["namespace"] == namespace]


@asynccontextmanager
async def demo(*, has_workload: bool = False) -> AsyncGenerator[Demo, None]:
    running = Demo(has_workload=has_workload)
    async with running.cluster.running():
        yield running


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=lambda: PacedLoop(UNLIMITED)) as runner:
        runner.run(work())


# --- objects ---


def test_objects_are_created_from_a_text():
    async def main() -> None:
        async with demo() as running:
            text = f"{POD.replace('NAME', 'a')}---\n{POD.replace('NAME', 'b')}"
            answer = await running.act("create", text=text)
            assert answer == {"message": "created 2 objects", "objects": 2}
            assert len(running.pods("default")) == 2
            text = f"{POD.replace('NAME', 'c')}---\n{POD.replace('NAME', 'b')}"
            with pytest.raises(ApiError) as caught:
                await running.act("create", text=text)
            assert caught.value.code == 409
            message = 'text#2: pods "b" already exists; 1 object before it is created'
            assert str(caught.value) == message

    run(main)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no object in the text"),
        ("a: [", 'cannot read "text": line'),
        ("{", 'cannot read "text"'),
        ("kind: Pod\napiVersion: v1\n", "text#1"),
        (f"{POD.replace('NAME', 'a')}---\nkind: Pod\napiVersion: v1\nspec: 3\n", "text#2"),
    ],
)
def test_a_text_that_cannot_be_read_is_refused_with_its_place(text: str, message: str):
    async def main() -> None:
        async with demo() as running:
            assert message in str(await running.refusal("create", text=text))
            assert message in str(await running.refusal("load", text=text))
            assert running.load_count == 0
            assert not running.pods("default")
            assert running.node("node-0")

    run(main)


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_makes_pods(template: str):
    async def main() -> None:
        async with demo(has_workload=True) as running:
            before = len(running.pods())
            await running.act("add-pods", template=template, count=3, name=f"my-{template}")
            mine = [
                pod
                for pod in running.pods()
                if pod["metadata"]["labels"]["app"] == f"my-{template}"
            ]
            assert len(mine) == 3
            assert len(running.pods()) >= before + 3

    run(main)


def test_pods_are_made_as_the_form_says():
    async def main() -> None:
        async with demo() as running:
            await running.act(
                "add-pods",
                template="database",
                namespace="other",
                name="mine",
                cpu="250m",
                memory="1Gi",
                resources={"example.com/x": "2"},
                nodeSelector={"pool": "usual"},
                runSeconds=5,
            )
            (pod,) = running.pods("other")
            requests = {"cpu": "250m", "memory": "1Gi", "example.com/x": "2"}
            assert pod["spec"]["containers"][0]["resources"]["requests"] == requests
            assert pod["spec"]["nodeSelector"] == {"pool": "usual"}
            assert pod["metadata"]["annotations"]["kubestow.io/run-seconds"] == "5"
            assert pod["metadata"]["generateName"] == "mine-"

    run(main)


@pytest.mark.parametrize("title", SHAPES)
def test_every_shape_makes_nodes_with_names_of_their_own(title: str):
    async def main() -> None:
        async with demo() as running:
            answer = await running.act("add-nodes", shape=SHAPES[title], count=2)
            assert answer["objects"] == 2, answer
            assert running.node("node-9")
            assert running.node("node-10")

    run(main)


def test_an_object_is_deleted():
    async def main() -> None:
        async with demo(has_workload=True) as running:
            await running.act("delete", kind="Deployment", namespace="demo", name="web")
            await running.act("delete", kind="Node", name="node-0")
            with pytest.raises(NotFoundError):
                running.node("node-0")
            with pytest.raises(NotFoundError):
                await running.act("delete", kind="Pod", namespace="demo", name="none")

    run(main)


# --- nodes ---


def test_a_node_is_cordoned_and_uncordoned():
    async def main() -> None:
        async with demo() as running:
            await running.act("cordon", node="node-1")
            assert value_at(running.node("node-1"), "spec", "unschedulable") is True
            await running.act("uncordon", node="node-1")
            assert not value_at(running.node("node-1"), "spec", "unschedulable")

    run(main)


def test_a_drained_node_keeps_what_its_budget_protects():
    async def main() -> None:
        async with demo(has_workload=True) as running:
            await asyncio.sleep(5)
            await running.act("create", text=BUDGET)
            await asyncio.sleep(2)
            name = next(
                value_at(pod, "spec", "nodeName")
                for pod in running.pods()
                if pod["metadata"]["labels"]["app"] == "web"
            )
            answer = await running.act("drain", node=name)
            assert answer["message"].startswith(f'drained "{name}": evicted ')
            assert answer["objects"] >= 1
            assert value_at(running.node(name), "spec", "unschedulable") is True

    run(main)


def test_a_node_that_fails_is_lost_until_it_is_repaired():
    async def main() -> None:
        async with demo() as running:

            def ready() -> str:
                conditions = running.node("node-2")["status"]["conditions"]
                return next(one["status"] for one in conditions if one["type"] == "Ready")

            await asyncio.sleep(5)
            assert ready() == "True"
            await running.act("fail", node="node-2")
            await asyncio.sleep(120)
            assert ready() == "Unknown"
            await running.act("repair", node="node-2")
            await asyncio.sleep(30)
            assert ready() == "True"

    run(main)


@pytest.mark.parametrize("action", ["cordon", "uncordon", "drain", "fail", "repair"])
def test_a_node_that_is_not_there_is_named(action: str):
    async def main() -> None:
        async with demo() as running:
            with pytest.raises(NotFoundError, match='nodes "nothing" not found'):
                await running.act(action, node="nothing")
            error = await running.refusal(action)
            assert str(error) == 'the field "node" is missing'

    run(main)


# --- time ---


def test_time_is_paused_resumed_and_sped_up():
    async def main() -> None:
        async with demo() as running:
            changes: list[float] = []
            running.time.on_change = lambda: changes.append(running.loop.speed)
            await running.act("speed", factor=50)
            assert running.loop.speed == 50
            await running.act("pause")
            assert running.time.is_paused
            await running.act("resume")
            assert running.loop.speed == running.time.speed == 50
            assert changes == [50, 0, 50]
            await running.actions.perform("pause", {})
            running.loop.set_speed(UNLIMITED)

    run(main)


def test_a_recording_has_the_forms_of_time_only():
    async def main() -> None:
        async with demo() as running:
            assert TimeActions(running.time).names == ("pause", "resume", "speed")
            real = ClusterActions(running.store, running.clock)
            assert not {"pause", "resume", "speed"} & {*real.names}
            assert {"pause", "resume", "speed"} <= {*running.actions.names}

    run(main)


# --- the whole cluster ---


def test_a_cluster_is_saved_and_loaded_again():
    async def main() -> None:
        async with demo(has_workload=True) as running:
            await asyncio.sleep(5)
            saved = await running.act("save")
            await running.act("add-nodes", shape="cpu=1", count=5)
            await running.act("add-pods", template="batch", count=5)
            before = {node.name for node in running.store.objects_of(NODES)}
            await running.act("load", text=saved["text"])
            after = {node.name for node in running.store.objects_of(NODES)}
            assert len(before) == len(after) + 5
            assert running.load_count == 1
            await asyncio.sleep(5)
            placed = [pod for pod in running.pods() if value_at(pod, "spec", "nodeName")]
            assert len(placed) >= 15

    run(main)


EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("name", ["cluster.yaml", "workload.yaml", "day.yaml"])
def test_every_example_is_loaded(name: str):
    """Also on a cluster whose workload is of the same namespace, and a second time."""

    async def main() -> None:
        async with demo(has_workload=True) as running:
            text = (EXAMPLES / name).read_text()
            for _ in range(2):
                answer = await running.act("load", text=text, name=name)
                assert answer["message"].startswith("loaded ")
            await asyncio.sleep(60)
            if name == "cluster.yaml":
                assert len(list(running.store.objects_of(NODES))) == 4
            else:
                assert running.pods("default")

    run(main)


def test_all_examples_are_tried():
    objects = ("Scenario", "Deployment", "Node")
    names = {
        path.name
        for path in EXAMPLES.rglob("*.yaml")
        if any(f"kind: {kind}" in path.read_text() for kind in objects)
    }
    assert names == {"cluster.yaml", "workload.yaml", "day.yaml"}


def test_a_chosen_file_is_named_in_errors():
    async def main() -> None:
        async with demo() as running:
            text = "apiVersion: v1\nkind: Node\nmetadata: {name: Not_A_Name}\n"
            error = await running.refusal("load", text=text, name="mine.yaml")
            assert str(error).startswith("mine.yaml#1: cannot be loaded: ")
            error = await running.refusal(
                "load", text=SCENARIO.replace("arrivals:", "arivals:"), name="busy.yaml"
            )
            assert str(error).startswith("busy.yaml, line 6: ")
            error = await running.refusal("load", text="{", name="broken.json")
            assert 'cannot read "broken.json"' in str(error)

    run(main)


def test_what_cannot_be_loaded_leaves_the_cluster_as_it_is():
    async def main() -> None:
        async with demo() as running:
            text = "apiVersion: v1\nkind: Node\nmetadata: {name: Not_A_Name}\n"
            error = await running.refusal("load", text=text)
            assert "text#1: cannot be loaded" in str(error)
            other = "apiVersion: acme.example/v1\nkind: Widget\nmetadata: {name: w}\n"
            error = await running.refusal("load", text=other)
            assert str(error) == "no object in the text is of a kind that this cluster has"
            assert running.load_count == 0
            assert running.node("node-0")

    run(main)


SCENARIO = """\
apiVersion: kubestow.dev/v1alpha1
kind: Scenario
name: busy
until: 10m
nodes: [{name: worker, count: 3, capacity: {cpu: 4, memory: 16Gi}}]
arrivals:
  - name: batch
    every: 1m
    duration: 90s
    template:
      apiVersion: v1
      kind: Pod
      spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
actions:
  - {at: 5m, fail: worker-1}
"""


def test_a_scenario_is_loaded_and_goes_on_with_the_time_of_the_cluster():
    async def main() -> None:
        async with demo(has_workload=True) as running:
            answer = await running.act("load", text=SCENARIO)
            assert answer["message"] == 'loaded 3 objects; the scenario "busy" begins'
            assert {node.name for node in running.store.objects_of(NODES)} == {
                "worker-0", "worker-1", "worker-2",
            }  # fmt: skip
            await asyncio.sleep(250)
            phases = [value_at(pod, "status", "phase") for pod in running.pods("default")]
            assert phases == ["Succeeded"] * 3 + ["Running"] * 2
            await asyncio.sleep(150)
            assert is_stopped(running.node("worker-1"))
            # Another one ends it.
            await running.act("load", text=SCENARIO.replace("every: 1m", "every: 1h"))
            await asyncio.sleep(200)
            assert len(running.pods("default")) == 1

    run(main)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("arrivals:", "arivals:", 'text, line 6: arivals: unknown field; did you mean "arrivals"?'),
        ("every: 1m", "every: -1m", 'text, line 8: arrivals[0].every: is "-1m", expected'),
        ("    every: 1m\n    duration: 90s\n", "    csv: /a.csv\n", 'names the file "/a.csv", but'),
    ],
)
def test_a_scenario_that_cannot_be_played_leaves_the_cluster_as_it_is(
    old: str, new: str, message: str
):
    async def main() -> None:
        async with demo() as running:
            error = await running.refusal("load", text=SCENARIO.replace(old, new))
            assert message in str(error)
            assert running.load_count == 0
            assert running.node("node-0")

    run(main)


# --- wrong input ---


@pytest.mark.parametrize(
    ("action", "body", "where"),
    [
        ("create", {"text": 3}, "text"),
        ("add-pods", {"template": "nope"}, "template"),
        ("add-pods", {"template": "web", "count": 0}, "count"),
        ("add-pods", {"template": "web", "count": ADDED_MAX + 1}, "count"),
        ("add-pods", {"template": "web", "count": "3"}, "count"),
        ("add-pods", {"template": "web", "cpu": "much"}, "cpu"),
        ("add-pods", {"template": "web", "memory": "-1"}, "memory"),
        ("add-pods", {"template": "web", "resources": {"a/b": "x"}}, "a/b"),
        ("add-pods", {"template": "web", "namespace": "../etc"}, "namespace"),
        ("add-pods", {"template": "web", "name": "<script>"}, "name"),
        ("add-pods", {"template": "web", "runSeconds": -1}, "runSeconds"),
        ("add-nodes", {"shape": "cpu=lots"}, "shape"),
        ("add-nodes", {"shape": "cpu=1,count=5000"}, "shape"),
        ("add-nodes", {"shape": ""}, "shape"),
        ("delete", {"kind": "pods", "name": "a"}, "kind"),
        ("speed", {"factor": 0}, "factor"),
        ("speed", {"factor": 1e9}, "factor"),
    ],
)
def test_wrong_input_names_the_field(action: str, body: JsonObject, where: str):
    async def main() -> None:
        async with demo() as running:
            error = await running.refusal(action, **body)
            assert error.where == where
            assert str(error)
            assert not running.pods()

    run(main)


@pytest.mark.parametrize("action", ["create", "add-pods", "cordon", "delete", "pause", "save"])
def test_a_field_that_a_form_does_not_have_is_refused(action: str):
    async def main() -> None:
        async with demo() as running:
            error = await running.refusal(action, nonsense=1)
            assert "nonsense" in str(error)

    run(main)


# --- the workload ---


@pytest.mark.slow
def test_the_workload_goes_on_until_it_is_stopped():
    async def main() -> None:
        running = Demo(has_workload=True)
        workload = LivingWorkload(running.store, running.clock, running.size)
        running.cluster.parts.append(workload)
        async with running.cluster.running():
            await asyncio.sleep(90)
            apps = {pod["metadata"]["labels"]["app"] for pod in running.pods()}
            assert {"web", "cache", "batch", "database", "scratch"} <= apps
            waiting = [pod for pod in running.pods() if not value_at(pod, "spec", "nodeName")]
            assert 3 <= len(waiting) < 30
            workload.stop()
            await asyncio.sleep(60)
            apps = {pod["metadata"]["labels"]["app"] for pod in running.pods()}
            assert "batch" not in apps

    run(main)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("runSeconds", -1, "-1 is given, expected at least 0"),
        ("count", "two", '"two" is given, expected a whole number'),
        ("count", 0, "0 is given, expected at least 1"),
        ("nodeSelector", "a=b", '"a=b" is given, expected a map'),
    ],
)
def test_a_wrong_field_is_named_in_plain_words(field: str, value: object, text: str):
    async def main() -> None:
        async with demo() as running:
            error = await running.refusal("add-pods", template="web", **{field: value})
            assert (str(error), error.where) == (text, field)

    run(main)


# --- plans ---


def test_a_plan_is_found_and_changes_nothing():
    async def main() -> None:
        async with demo() as running:
            first, *others = [node.name for node in running.store.objects_of(NODES)]
            for name in others:
                await running.act("cordon", node=name)
            workload = yaml.safe_dump(
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": "web", "namespace": "default"},
                    "spec": {
                        "replicas": 4,
                        "selector": {"matchLabels": {"app": "web"}},
                        "template": {
                            "metadata": {"labels": {"app": "web"}},
                            "spec": {
                                "containers": [
                                    {
                                        "name": "c",
                                        "image": "c",
                                        "resources": {"requests": {"cpu": "500m"}},
                                    }
                                ]
                            },
                        },
                    },
                }
            )
            await running.act("create", text=workload)
            await asyncio.sleep(30)
            for name in others:
                await running.act("uncordon", node=name)
            # Until the taint of closed nodes is gone as well.
            await asyncio.sleep(5)
            before = running.pods("default")
            assert {pod["spec"].get("nodeName") for pod in before} == {first}
            answer = await running.act("plan", goal="balance", maxMoves=2)
            assert answer["objects"] == 2, answer
            assert "after 2 moves" in answer["message"]
            view = answer["view"]
            assert len(view["steps"]) == 2
            names = [node["name"] for node in view["nodes"]]
            for step in view["steps"]:
                (move,) = step["moves"]
                assert names[move["source"]] == first
                assert names[move["target"]] in others
            assert running.pods("default") == before

    run(main)


def test_a_plan_that_cannot_be_made_is_refused():
    async def main() -> None:
        async with demo() as running:
            assert "there is no goal" in str(await running.refusal("plan", goal="best"))
            assert "PodMetrics" in str(await running.refusal("plan", goal="balance=used"))
            refusal = await running.refusal("plan", goal="balance", maxMoves=1000)
            assert refusal.where == "maxMoves"

    run(main)
