"""Scenarios, comparisons, capacity, changes and suggestions from Python."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kubestow import (
    InputError,
    InputWarning,
    apply_suggestion,
    change_cluster,
    compare,
    drain_check,
    fit,
    headroom,
    load_cluster,
    need,
    read_cluster,
    simulate,
    simulate_scenario,
)
from kubestow.api.decode import to_document
from kubestow.api.files import Document
from kubestow.library import sources
from kubestow.testing import make_node, make_pod

EXAMPLES = Path(__file__).parents[2] / "examples"
CLUSTER = EXAMPLES / "cluster.yaml"
WORKLOAD = EXAMPLES / "workload.yaml"


@pytest.mark.slow
def test_a_scenario_runs_until_a_given_time() -> None:
    run = simulate_scenario(EXAMPLES / "day.yaml", until="1h")
    assert run.virtual_duration_s == 3600
    assert run.pods
    assert simulate_scenario(EXAMPLES / "day.yaml", until=60.0).virtual_duration_s == 60


@pytest.mark.parametrize("until", ["soon", 0, -1.0, float("nan")])
def test_a_time_that_is_none_is_refused(until: str | float) -> None:
    with pytest.raises(InputError, match="until is"):
        simulate_scenario(EXAMPLES / "day.yaml", until=until)


@pytest.mark.slow
def test_schedulers_are_compared(tmp_path: Path) -> None:
    packed = tmp_path / "packed.yaml"
    packed.write_text(
        """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
    )
    result = compare(CLUSTER, WORKLOAD, variants=[f"packed={packed}"], jobs=1)
    assert [variant.name for variant in result.variants] == ["default", "packed"]
    assert not result.failures


def test_a_variant_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(InputError, match='variant "x": cannot read "nothing'):
        compare(CLUSTER, variants=["x=nothing.yaml"])


def test_capacity_answers_its_four_questions() -> None:
    pod = to_document(make_pod("copy", cpu="1"))
    node = to_document(make_node("n", cpu="4", memory="8Gi", pods=110))
    assert fit(node, copies=pod).copies == 4
    assert [one.copies for one in headroom(node, copies=pod).pools] == [4]
    waiting = [to_document(make_pod(f"p{i}", cpu="3")) for i in range(3)]
    assert [one.count for one in need(node, waiting, shapes=["cpu=4,memory=8Gi"]).nodes] == [2]
    assert [one.name for one in drain_check([node]).removable] == ["n"]


def test_changes_are_a_source() -> None:
    changed = change_cluster(CLUSTER, WORKLOAD, add_nodes={"node-b-1": 1}, cordon=["node-b-1"])
    assert len(simulate(changed).nodes) == 5
    with pytest.raises(InputError, match="nothing"):
        change_cluster(CLUSTER, drain=["nothing"])


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: change_cluster(CLUSTER, cordon="node-a-1"), "cordon"),
        (lambda: change_cluster(CLUSTER, remove_pods="app=web"), "remove_pods"),
        (lambda: load_cluster(CLUSTER, feature_gates="GangScheduling=true"), "feature_gates"),
        (lambda: need(CLUSTER, shapes="cpu=8"), "shapes"),
        (lambda: compare(CLUSTER, variants="v1.9"), "variants"),
    ],
)
def test_one_text_in_place_of_a_list_is_refused(call: Callable[[], Any], name: str) -> None:
    # Otherwise each of its letters would be a node, a gate or a file.
    with pytest.raises(InputError, match=f"^{name} is .*, expected a list: {name}="):
        call()


def test_a_suggestion_is_applied() -> None:
    why = load_cluster(CLUSTER, WORKLOAD).explain("reports-0")
    assert simulate(CLUSTER, WORKLOAD).pending
    assert not simulate(apply_suggestion(why.suggestions[0], CLUSTER, WORKLOAD)).pending


def test_a_remedy_for_several_pods_is_applied() -> None:
    why = load_cluster(CLUSTER, WORKLOAD).explain_waiting()
    assert why.remedies[0].places == 1
    assert not simulate(apply_suggestion(why.remedies[0], CLUSTER, WORKLOAD)).pending


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({"kind": "Foo"}, "object 1 is a Foo, which decides nothing about pods"),
        ({"metadata": {"name": "x"}}, "object 1 has no kind"),
        ([{"kind": "Foo"}], r"object 1\[0\] is a Foo"),
        (["x"], r"object 1\[0\] is 'x', expected a Kubernetes object"),
    ],
)
def test_objects_that_decide_nothing_are_refused(source: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        load_cluster(source)


# --- files with objects that cannot be used ---

MIXED = """\
apiVersion: v1
kind: Pod
metadata: {name: good}
spec: {containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: classy}
spec: {priorityClassName: gold, containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: half}
spec: {containers: [{name: c, image: i, resources: {limits: {example.com/gpu: 500m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: number}
spec: {containers: [{name: c, image: i}], priority: high}
"""
Answer = Callable[..., Any]
FUNCTIONS: dict[str, Answer] = {
    "load_cluster": load_cluster,
    "simulate": simulate,
    "change_cluster": change_cluster,
    "drain_check": drain_check,
    "need": lambda *sources, **options: need(*sources, shapes=["cpu=4"], **options),
    "headroom": headroom,
    "fit": lambda *sources, **options: fit(*sources, copies=make_copy(), **options),
}


def make_copy() -> Any:
    return to_document(make_pod("copy", cpu="1"))


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    (tmp_path / "mixed.yaml").write_text(MIXED)
    return tmp_path / "mixed.yaml"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bad_objects_of_files_are_named_and_skipped(mixed: Path, name: str) -> None:
    with pytest.warns(InputWarning) as found:
        FUNCTIONS[name](CLUSTER, mixed)
    (warning,) = found
    # The line of the script, not one of the package.
    assert warning.filename == __file__
    text = str(warning.message)
    assert text.startswith("left out of the input (strict=True refuses it): ")
    for part in (
        f'{mixed}#4: cannot decode Pod "number": spec.priority is "high": expected a whole number',
        f'{mixed}#2: pods "classy" is forbidden: no PriorityClass with name gold was found',
        f'{mixed}#3: Pod "half" is invalid: [spec.containers[0].resources.limits[example.com/gpu]',
    ):
        assert part in text
    assert "good" not in text
    with pytest.raises(InputError, match=r"mixed\.yaml#4.*; there are 2 more"):
        FUNCTIONS[name](CLUSTER, mixed, strict=True)


def test_what_is_left_is_used(mixed: Path) -> None:
    with pytest.warns(InputWarning):
        assert load_cluster(CLUSTER, mixed).pods == ["default/good"]
    gold = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 7}
    with pytest.warns(InputWarning):
        cluster = load_cluster(CLUSTER, {**gold, "metadata": {"name": "gold"}}, mixed)
    assert cluster.pods == ["default/good", "default/classy"]


def test_fields_that_do_not_exist_are_named(tmp_path: Path) -> None:
    pod = MIXED.partition("---")[0].replace("containers:", "nodeSelectr: {a: b}, containers:")
    (tmp_path / "pod.yaml").write_text(pod)
    with pytest.warns(InputWarning, match=r'unknown field "spec.nodeSelectr" \(did you mean'):
        load_cluster(CLUSTER, tmp_path)
    with pytest.raises(InputError, match="nodeSelectr"):
        load_cluster(CLUSTER, tmp_path, strict=True)


def test_a_warning_names_a_limited_number(tmp_path: Path) -> None:
    bad = MIXED.split("---\n")[3]
    text = "---\n".join(bad.replace("number", f"number-{index}") for index in range(30))
    (tmp_path / "many.yaml").write_text(text)
    with pytest.warns(InputWarning, match=r"many\.yaml#10: .*; and 20 more$"):
        load_cluster(CLUSTER, tmp_path)


def test_files_of_which_nothing_can_be_used_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(MIXED.split("---\n")[1])
    with pytest.raises(InputError, match="no PriorityClass with name gold"):
        load_cluster(tmp_path)


def test_objects_of_a_live_cluster_that_cannot_be_used_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two versions of one object, as a list in pages may have them."""
    pods = [to_document(make_pod("p", uid="u", cpu=cpu)) for cpu in ("1", "2")]

    async def read(*_: object) -> Any:
        documents = [Document(pod, f"pods[{number}]") for number, pod in enumerate(pods)]
        return SimpleNamespace(documents=documents)

    monkeypatch.setattr(sources, "Kubeconfig", lambda *_: SimpleNamespace(server=lambda _: None))
    monkeypatch.setattr(sources, "read_server", read)
    with pytest.warns(InputWarning, match=r'pods\[1\]: pods "p" already exists') as found:
        assert read_cluster() == pods[:1]
    assert found[0].filename == __file__
    with pytest.raises(InputError, match="already exists"):
        read_cluster(strict=True)


@pytest.mark.parametrize("beside", [(), (CLUSTER,)], ids=["alone", "beside-files"])
def test_objects_of_a_script_must_be_right(beside: tuple[Path, ...]) -> None:
    pod = to_document(make_pod("classy"))
    del pod["metadata"]["uid"]
    pod["spec"]["priorityClassName"] = "gold"
    with pytest.raises(InputError, match=r"object \d.*no PriorityClass with name gold"):
        load_cluster(*beside, pod)


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        ({"kind": "Pod"}, "name"),
        ({"kind": "Node", "metadata": {"name": "n"}}, "kind 'Node', expected a Pod"),
        ({"kind": "Pod", "metadata": {"name": "p"}, "spec": {}}, "spec.containers"),
    ],
)
def test_a_pod_to_place_is_checked(pod: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        load_cluster(CLUSTER).place(pod)


def test_cells_of_a_notebook_are_run_by_a_loop() -> None:
    async def cell() -> int:
        cluster = load_cluster(CLUSTER, WORKLOAD)
        return len(cluster.nodes) + len(simulate(CLUSTER, WORKLOAD).pods)

    assert asyncio.run(cell()) == 11
