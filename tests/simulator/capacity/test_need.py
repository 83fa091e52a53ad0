"""`need` names the cheapest fleet that suffices; a search over all smaller ones finds none."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kubestow.api.files import Document
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import InputError
from kubestow.simulator.capacity.need import Need, ShapeCount, UnplacedPod, need
from kubestow.simulator.capacity.shapes import PricedShape, read_shapes
from kubestow.simulator.simulation import place

Raw = dict[str, Any]
SELF: Raw = {"labelSelector": {"matchLabels": {"app": "a"}}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(name: str, cpu: str, memory: str = "1Gi", **spec: Any) -> Raw:
    requests = {"cpu": cpu, "memory": memory}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "a"}},
        "spec": {
            "containers": [{"name": "c", "image": "c", "resources": {"requests": requests}}],
            **spec,
        },
    }


def node(name: str, cpu: str = "2") -> Raw:
    capacity = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": capacity},
    }


def documents(raw: list[Raw]) -> list[Document]:
    return [Document(one, f"all.yaml#{number}") for number, one in enumerate(raw, 1)]


def mixed(rng: np.random.Generator) -> list[Raw]:
    """Pods of all sizes, some of which may not share a node, and a node that is there."""
    apart = {"podAntiAffinity": {REQUIRED: [{"topologyKey": "kubernetes.io/hostname", **SELF}]}}
    pods = [
        pod(
            f"p{index}",
            str(rng.choice(["500m", "1", "1500m", "3"])),
            str(rng.choice(["1Gi", "3Gi"])),
            **({"affinity": apart} if rng.random() < 0.15 else {}),
        )
        for index in range(5)
    ]
    return [node("old"), *pods]


def spread(rng: np.random.Generator) -> list[Raw]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": str(rng.choice(["topology.kubernetes.io/zone", "kubernetes.io/hostname"])),
        "whenUnsatisfiable": "DoNotSchedule",
        **SELF,
    }
    return [pod(f"p{i}", "1", topologySpreadConstraints=[constraint]) for i in range(5)]


def daemons(rng: np.random.Generator) -> list[Raw]:
    """A daemon takes a part of every new node."""
    template = {"metadata": {"labels": {"d": "d"}}, "spec": pod("d", "500m")["spec"]}
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"d": "d"}}, "template": template},
    }
    return [daemon_set, *(pod(f"p{i}", str(rng.choice(["1", "700m"]))) for i in range(6))]


SHAPES = {
    "one": ["cpu=4,memory=8Gi"],
    "fewest": ["cpu=2,memory=8Gi,name=s", "cpu=5,memory=8Gi,name=l"],
    "cheapest": ["cpu=2,memory=4Gi,name=s,price=1", "cpu=4,memory=9Gi,name=l,price=1.9"],
}


def suffices(cluster: list[Document], shapes: list[PricedShape], fleet: tuple[int, ...]) -> bool:
    """Placed anew by a simulation."""
    pairs = zip(shapes, fleet, strict=True)
    nodes = [one for shape, count in pairs for one in shape.nodes(count)]
    return not place([*cluster, *nodes], SchedulerConfig()).pending


def cost(shapes: list[PricedShape], fleet: tuple[int, ...]) -> tuple[float, int]:
    prices = [shape.price or 1.0 for shape in shapes]
    return sum(price * count for price, count in zip(prices, fleet, strict=True)), sum(fleet)


@pytest.mark.parametrize("seed", range(1))
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("family", [mixed, spread, daemons], ids=lambda family: family.__name__)
def test_no_smaller_fleet_suffices(
    family: Callable[[np.random.Generator], list[Raw]], shapes: list[str], seed: int
) -> None:
    cluster = documents(family(np.random.default_rng(seed)))
    priced = read_shapes(shapes)
    found = need(cluster, priced)
    assert found.is_proven
    counts = {entry.shape: entry.count for entry in found.nodes}
    best = tuple(counts.get(shape.name, 0) for shape in priced)
    assert suffices(cluster, priced, best)
    for fleet in itertools.product(range(6), repeat=len(priced)):
        if cost(priced, fleet) < cost(priced, best):
            assert not suffices(cluster, priced, fleet), fleet
    assert found.price == (
        None if priced[0].price is None else pytest.approx(cost(priced, best)[0])
    )


def test_nothing_is_needed_where_all_pods_fit() -> None:
    found = need(documents([node("a"), pod("p", "1")]), read_shapes(["cpu=1"]))
    assert found == Need(nodes=[], price=None, pods=1, is_proven=True, tried=1, waiting=[])


def test_room_that_is_there_is_used() -> None:
    running = pod("r", "1", nodeName="old")
    pods = [pod(f"p{index}", "1") for index in range(9)]
    found = need(documents([node("old", "8"), running, *pods]), read_shapes(["cpu=2"]))
    assert found.nodes == [ShapeCount("shape-1", 1)]
    assert found.is_proven


def test_pods_that_fit_on_no_shape_are_named() -> None:
    found = need(documents([pod("p", "1"), pod("huge", "9")]), read_shapes(["cpu=4"]))
    assert found.nodes == []
    assert found.waiting == [
        UnplacedPod("default/huge", "0/2 nodes are available: 2 Insufficient cpu.")
    ]


def test_what_was_not_tried_is_said() -> None:
    apart = {"podAntiAffinity": {REQUIRED: [{"topologyKey": "kubernetes.io/hostname", **SELF}]}}
    pods = [pod(f"p{index}", "1", affinity=apart) for index in range(9)]
    found = need(documents(pods), read_shapes(["cpu=4"]), tries_max=6)
    assert found.nodes == [ShapeCount("shape-1", 9)]
    assert not found.is_proven
    assert need(documents(pods), read_shapes(["cpu=4"])).is_proven


def test_pods_with_gates_need_nothing() -> None:
    gated = pod("p", "9", schedulingGates=[{"name": "g"}])
    assert need(documents([gated]), read_shapes(["cpu=1"])).node_count == 0


def test_shapes_are_read_from_files(tmp_path: Any) -> None:
    path = tmp_path / "shapes.yaml"
    path.write_text(
        "kind: Node\napiVersion: v1\n"
        'metadata: {name: big, annotations: {kubestow.io/price: "0.5"}, labels: {pool: x}}\n'
        "status: {capacity: {cpu: 8, memory: 8Gi, pods: 5}}\n"
    )
    (shape,) = read_shapes([str(path)])
    assert (shape.name, shape.price) == ("big", 0.5)
    assert shape.amounts().tolist() == [8000, 8 * 2**30, 0, 5]
    (made,) = shape.nodes(1)
    assert made.raw["metadata"] == {
        "name": "big-1",
        "labels": {"pool": "x", "kubernetes.io/hostname": "big-1"},
    }


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "the shapes of nodes are missing; give one, for example --shape cpu=8"),
        (["cpu=x"], 'node shape "cpu=x": cpu is "x", expected a quantity'),
        (["cpu=1,price=-1"], 'node shape "cpu=1,price=-1": the price is "-1", expected a number'),
        (["cpu=1,price=1,name=a", "cpu=2,name=b"], 'node shape "b" has no price; give all'),
        (["cpu=1,name=a", "cpu=2,name=a"], 'two node shapes are called "a"'),
        (["cpu=1,count=3"], "the number of nodes is what is looked for"),
        (["gone.yaml"], 'cannot read "gone.yaml"'),
    ],
)
def test_wrong_shapes_are_refused(texts: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_shapes(texts)
