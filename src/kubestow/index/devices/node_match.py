"""Which nodes can reach a slice or a device (spec 08 B7.1)."""

from kubestow.api.labels import SelectorError
from kubestow.api.node import Node
from kubestow.api.node_selector import CompiledNodeSelector, compile_node_selector
from kubestow.api.pod import NodeSelector
from kubestow.index.devices.go_text import selector_text


class NodeSelectionError(Exception):
    """A node selector that does not parse; the text contains it and the reason."""


class Reach:
    """The nodes a slice or device names: one, all, or those a selector matches.

    Compares and hashes by identity; made once per slice or device.
    """

    __slots__ = ("_compiled", "all_nodes", "node_name", "selector")

    def __init__(
        self, node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None
    ) -> None:
        self.node_name = node_name or ""
        self.all_nodes = bool(all_nodes)
        self.selector = selector
        self._compiled: CompiledNodeSelector | None = None

    @property
    def is_given(self) -> bool:
        return bool(self.node_name) or self.all_nodes or self.selector is not None

    def includes(self, node: Node) -> bool:
        """Whether the node is one of them; raises NodeSelectionError."""
        if self.node_name:
            return self.node_name == node.metadata.name
        if self.all_nodes:
            return True
        if self.selector is None:
            return False
        if self._compiled is None:
            self._compiled = _compiled(self.selector)
        return self._compiled.matches(node.metadata.labels, node.metadata.name)


def _compiled(selector: NodeSelector) -> CompiledNodeSelector:
    try:
        return compile_node_selector(selector, strict=True)
    except SelectorError as error:
        raise NodeSelectionError(
            f"failed to parse node selector {selector_text(selector)}: {error}"
        ) from error
