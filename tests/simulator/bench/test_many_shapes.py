"""ManyShapes is the same to the bit wherever it is built (spec 10 §7)."""

import hashlib
from collections.abc import Iterable

from kubestow.simulator.bench.many_shapes import (
    draw_init_pods,
    draw_measured_pods,
    draw_nodes,
    draw_shapes,
    many_shapes,
)

NODES = draw_nodes(5000)
SHAPES = draw_shapes()


def digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def test_nodes_are_those_of_the_chapter() -> None:
    assert NODES[0].line() == "node-00000|8|32|hdd|arm64|pool-7||0|17,10,21,8"
    assert (
        digest(node.line() for node in NODES)
        == "c732c5d70ecb49939b67bb0d30fbc90f6db4db083833fe1f2df9fd09ea0f21ee"
    )


def test_shapes_are_those_of_the_chapter() -> None:
    assert SHAPES[0].line() == "0|ns-0|750|256|0|3|arch=amd64||6|0|7|65||2||2||3|20|0"
    assert (
        digest(shape.line() for shape in SHAPES)
        == "d1f086defd998afbf9a97966031fef347b9ec30de4a3eb47fad917ff66960791"
    )


def test_running_pods_are_those_of_the_chapter() -> None:
    pods = draw_init_pods(NODES, SHAPES, 10000)
    assert pods[:3] == [(64, 3462), (76, 2376), (89, 1334)]
    assert (
        digest(f"{shape}|{row}" for shape, row in pods)
        == "d4a16861d439afe909cecb6a53a6f1dff14083db8d751989dd10ef6063bd6410"
    )


def test_measured_pods_are_those_of_the_chapter() -> None:
    pods = draw_measured_pods(5000)
    assert pods[:8] == [54, 51, 35, 142, 72, 83, 97, 155]
    assert (
        digest(map(str, pods)) == "1dbb29a45d4e940be2cafa3cdb7e49d46fc74e8839084551baf17d547c1af9fd"
    )


def test_objects_have_the_counts_of_the_chapter() -> None:
    made = many_shapes(50, 100, 30)
    assert (len(made.nodes), len(made.running), len(made.measured)) == (50, 100, 30)
    assert len(made.services) == 50
