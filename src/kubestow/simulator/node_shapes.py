"""Shapes of nodes as a user writes them: `cpu=8,memory=32Gi,nvidia.com/gpu=4,count=10`.

RESOURCE=QUANTITY   what the node has; cpu, memory and pods have defaults
label.KEY=VALUE     a label
count=N             how many such nodes there are
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kubestow.api.labels import label_value_errors, qualified_name_errors
from kubestow.api.meta import JsonObject
from kubestow.api.quantity import parse_quantity
from kubestow.api.resources import is_hugepage
from kubestow.api.topology import HOSTNAME_LABEL, ZONE_LABEL
from kubestow.errors import InputError
from kubestow.simulator.defaults import NODES_PER_CLUSTER

ZONES: Final = ("zone-a", "zone-b", "zone-c")
DEFAULT_CAPACITY: Final = {"cpu": "4", "memory": "16Gi", "pods": "110"}
_LABEL: Final = "label."
_NATIVE: Final = ("cpu", "memory", "pods", "ephemeral-storage")


class NodeShape(msgspec.Struct, frozen=True, kw_only=True):
    capacity: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    # None: as many as the command says for all shapes.
    count: int | None = None


def parse_shape(text: str) -> NodeShape:
    """The shape a text describes; InputError names the part that is wrong."""
    capacity: dict[str, str] = {}
    labels: dict[str, str] = {}
    count: int | None = None
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key:
            raise _wrong(text, f'"{part}" is not NAME=VALUE')
        if key == "count" and count is None:
            count = _count(text, value)
        elif key.startswith(_LABEL) and key.removeprefix(_LABEL) not in labels:
            labels[key.removeprefix(_LABEL)] = value
        elif key in capacity or key == "count" or key.startswith(_LABEL):
            raise _wrong(text, f'"{key}" is given twice')
        else:
            capacity[key] = _quantity(text, key, value)
    for key, value in labels.items():
        if errors := [*qualified_name_errors(key), *label_value_errors(value)]:
            raise _wrong(text, f'label "{key}={value}": {errors[0]}')
    return NodeShape(capacity=capacity, labels=labels, count=count)


def node_documents(shapes: Iterable[NodeShape], default_count: int) -> list[JsonObject]:
    """The nodes `node-0`, `node-1`, … of some shapes, in three zones."""
    wanted = [
        shape
        for shape in shapes
        for _ in range(default_count if shape.count is None else shape.count)
    ]
    if len(wanted) > NODES_PER_CLUSTER:
        raise InputError(
            f"the node shapes make {len(wanted)} nodes, expected at most {NODES_PER_CLUSTER}"
        )
    return [node_document(f"node-{index}", index, shape) for index, shape in enumerate(wanted)]


def node_document(
    name: str, index: int, shape: NodeShape, *, zones: Sequence[str] | None = None
) -> JsonObject:
    """One node of a shape; `index` decides on its zone, without zones it has none."""
    zones = ZONES if zones is None else zones
    labels = {
        HOSTNAME_LABEL: name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **({ZONE_LABEL: zones[index % len(zones)]} if zones else {}),
        **shape.labels,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": {**DEFAULT_CAPACITY, **shape.capacity}},
    }


def _count(text: str, value: str) -> int:
    if not value.isdecimal() or not 1 <= int(value) <= NODES_PER_CLUSTER:
        raise _wrong(text, f'count is "{value}", expected 1 to {NODES_PER_CLUSTER}')
    return int(value)


def _quantity(text: str, name: str, value: str) -> str:
    is_known = name in _NATIVE or is_hugepage(name)
    if not is_known and ("/" not in name or qualified_name_errors(name)):
        raise _wrong(
            text,
            f'"{name}" is not a resource of a node; expected {", ".join(_NATIVE)}, hugepages-SIZE,'
            " a name with a domain such as nvidia.com/gpu, label.KEY or count",
        )
    try:
        quantity = parse_quantity(value)
    except ValueError as error:
        example = "32Gi" if name in ("memory", "ephemeral-storage") else "4"
        raise _wrong(text, f'{name} is "{value}", expected a quantity such as {example}') from error
    is_whole = name not in ("pods",) and "/" not in name
    if quantity < parse_quantity(0) or not (is_whole or value.isdecimal()):
        raise _wrong(text, f'{name} is "{value}", expected a whole number of at least 0')
    return value


def _wrong(text: str, problem: str) -> InputError:
    return InputError(f'node shape "{text}": {problem}')
