"""Which nodes a volume can be reached from (spec 07 §1.3, §1.4).

A volume's node affinity is a node selector; in-tree volumes have a second one, with the labels of
the CSI driver, for nodes that use the driver.
"""

from typing import Final, NamedTuple

import numpy as np

from kubestow.api.csi_translation import (
    TranslationError,
    in_tree_volume,
    migrated_plugins,
    translated_affinity,
)
from kubestow.api.node import Node
from kubestow.api.node_selector import CompiledNodeSelector, compile_node_selector
from kubestow.api.storage import CSINode, PersistentVolume, VolumeNodeAffinity
from kubestow.arrays import BoolArray
from kubestow.cache.objects import ObjectStore
from kubestow.index.node_match import labels_match
from kubestow.index.nodes import Nodes


class VolumeAffinity(NamedTuple):
    """What a volume requires of a node's labels; None requires nothing.

    `plugin` is the in-tree plugin of a volume that a node may reach through a CSI driver instead;
    there `migrated` counts in place of `selector`, unless it could not be translated (`error`).
    """

    selector: CompiledNodeSelector | None
    plugin: str = ""
    migrated: CompiledNodeSelector | None = None
    error: str = ""

    @property
    def is_anywhere(self) -> bool:
        """Whether every node matches, migrated or not."""
        return self.selector is None and self.migrated is None and not self.error


ANYWHERE: Final = VolumeAffinity(None)


def affinity_of(volume: PersistentVolume) -> VolumeAffinity:
    selector = selector_of(volume.spec.node_affinity)
    in_tree = in_tree_volume(volume.spec)
    if in_tree is None or not in_tree.plugin.can_migrate:
        return ANYWHERE if selector is None else VolumeAffinity(selector)
    try:
        migrated = selector_of(translated_affinity(volume, in_tree))
    except TranslationError as error:
        return VolumeAffinity(selector, in_tree.plugin.name, error=str(error))
    return VolumeAffinity(selector, in_tree.plugin.name, migrated)


def selector_of(affinity: VolumeNodeAffinity | None) -> CompiledNodeSelector | None:
    if affinity is None or affinity.required is None:
        return None
    return compile_node_selector(affinity.required)


def nodes_matching(nodes: Nodes, selector: CompiledNodeSelector | None) -> BoolArray:
    """bool[node]: which nodes' labels satisfy the selector. Read-only for the caller."""
    if selector is None:
        return np.ones(len(nodes), np.bool_)
    if len(selector.terms) == 1:
        return labels_match(nodes, selector.terms[0].labels)
    mask = np.zeros(len(nodes), np.bool_)
    for term in selector.terms:
        # Fields are ignored: upstream checks labels without a node name.
        mask |= labels_match(nodes, term.labels)
    return mask


def mismatch(selector: CompiledNodeSelector | None, node: Node) -> str:
    """Why the node's labels do not satisfy the selector; empty if they do."""
    if selector is None or selector.matches(node.metadata.labels, ""):
        return ""
    return selector.error or "no matching NodeSelectorTerms"


class MigratedNodes:
    """Which nodes reach the volumes of an in-tree plugin through its CSI driver."""

    def __init__(self, csi_nodes: ObjectStore[CSINode]) -> None:
        self._csi_nodes = csi_nodes
        self._state: tuple[object, int, int] | None = None
        self._plugins: list[frozenset[str]] = []
        self._masks: dict[str, BoolArray] = {}

    def mask(self, nodes: Nodes, plugin: str) -> BoolArray:
        """bool[node]. Read-only for the caller."""
        snapshot = nodes.snapshot
        state = (snapshot, snapshot.log.epoch, self._csi_nodes.version)
        if state != self._state:
            self._state = state
            self._plugins = [migrated_plugins(self._csi_nodes.get(name)) for name in snapshot.names]
            self._masks.clear()
        mask = self._masks.get(plugin)
        if mask is None:
            mask = np.array([plugin in listed for listed in self._plugins], np.bool_)
            self._masks[plugin] = mask
        return mask[nodes.rows]

    def is_migrated(self, node_name: str, plugin: str) -> bool:
        return plugin in migrated_plugins(self._csi_nodes.get(node_name))
