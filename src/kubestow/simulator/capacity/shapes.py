"""Shapes of nodes that could be added, with their prices.

name=large,cpu=16,memory=64Gi,price=0.77    as `simulator.node_shapes` has it, with a name
shapes.yaml                                 Node manifests; the price is an annotation
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from kubestow.api.decode import convert
from kubestow.api.files import Document, load_documents
from kubestow.api.meta import JsonObject
from kubestow.api.node import Node
from kubestow.api.resources import Resources
from kubestow.arrays import IntArray
from kubestow.cluster.documents import as_object, value_at
from kubestow.errors import InputError
from kubestow.simulator.capacity.amounts import amounts
from kubestow.simulator.input.nodes import node_copy
from kubestow.simulator.node_shapes import node_document, parse_shape

PRICE_ANNOTATION: Final = "kubestow.io/price"


class PricedShape:
    """A shape of which there can be any number of nodes."""

    def __init__(
        self, name: str, price: float | None, node: Callable[[str, int], JsonObject]
    ) -> None:
        self.name: Final = name
        self.price: Final = price
        self._node = node

    def nodes(self, count: int) -> list[Document]:
        names = (f"{self.name}-{index + 1}" for index in range(count))
        return [
            Document(self._node(name, index), f'node shape "{self.name}"')
            for index, name in enumerate(names)
        ]

    def amounts(self) -> IntArray:
        """int64[4]: what one node has, as in `amounts`."""
        status = convert(Node, self._node(self.name, 0)).status
        resources = Resources.from_list(status.allocatable or status.capacity)
        return amounts(resources, resources.allowed_pods)


def read_shapes(texts: Sequence[str]) -> list[PricedShape]:
    """The shapes that texts describe or that files have; InputError for the first wrong one."""
    shapes: list[PricedShape] = []
    for text in texts:
        shapes += [_parsed(text, len(shapes) + 1)] if "=" in text else _from_file(text)
    if not shapes:
        raise InputError(
            "the shapes of nodes are missing; give one, for example --shape cpu=8,memory=32Gi"
        )
    names = [shape.name for shape in shapes]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f'two node shapes are called "{name}"; give each a name of its own')
    if len({shape.price is None for shape in shapes}) > 1:
        missing = next(shape.name for shape in shapes if shape.price is None)
        raise InputError(f'node shape "{missing}" has no price; give all of them one, or none')
    return shapes


def _parsed(text: str, number: int) -> PricedShape:
    name, price, rest = f"shape-{number}", None, list[str]()
    for part in text.split(","):
        key, _, value = (piece.strip() for piece in part.partition("="))
        match key:
            case "name":
                name = value
            case "price":
                price = _price(value, f'node shape "{text}"')
            case "count":
                raise InputError(f'node shape "{text}": the number of nodes is what is looked for')
            case _:
                rest.append(part)
    shape = parse_shape(",".join(rest) or "cpu=4")
    return PricedShape(name, price, lambda name, index: node_document(name, index, shape))


def _from_file(path: str) -> Iterable[PricedShape]:
    nodes = [one for one in load_documents([path]) if one.raw["kind"] == "Node"]
    if not nodes:
        raise InputError(f'there is no Node in "{path}"; a shape is a Node, or NAME=VALUE,...')
    for node in nodes:
        annotations = as_object(value_at(node.raw, "metadata", "annotations"))
        price = annotations.get(PRICE_ANNOTATION)
        yield PricedShape(
            node.raw["metadata"]["name"],
            None if price is None else _price(price, node.source),
            lambda name, _, raw=node.raw: node_copy(raw, name),
        )


def _price(text: str, where: str) -> float:
    try:
        price = float(text)
    except ValueError:
        price = math.nan
    if not 0 < price < math.inf:
        raise InputError(f'{where}: the price is "{text}", expected a number above 0')
    return price
