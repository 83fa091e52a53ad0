"""Nodes by name, label or taint. The page has only some labels of each node, so it asks here."""

from collections.abc import Sequence
from typing import Final

from kubestow.api.node import Node
from kubestow.api.taints import taint_text

TEXT_LENGTH_MAX: Final = 400
FOUND_MAX: Final = 10_000


def matching_nodes(nodes: Sequence[Node], text: str) -> list[str]:
    """The names of the nodes that have each word of the text in their name, in a label as
    `key=value` or in a taint as `key=value:effect`."""
    words = text.lower().split()
    found: list[str] = []
    for node in nodes:
        labels = (f"{key}={value}" for key, value in node.metadata.labels.items())
        texts = [node.metadata.name, *labels, *map(taint_text, node.spec.taints)]
        lines = "\n".join(texts).lower()
        if all(word in lines for word in words):
            found.append(node.metadata.name)
            if len(found) == FOUND_MAX:
                break
    return found
