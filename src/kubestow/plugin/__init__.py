"""All that an author of plugins imports, in one place; `docs/guides/write-a-plugin.md` explains it.

Not here: what only fast plugins need (`fast`), the extension points one by one
(`framework.plugin`), helpers for tests (`testing`).
"""

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import BoolArray, IntArray, NarrowArray
from kubestow.cache.change_log import Depends
from kubestow.cache.snapshot import Snapshot
from kubestow.config.plugin_args import PluginArgs
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import Diagnosis
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.node_plugin import NodeFilter, NodeScore
from kubestow.framework.plugin import (
    PostFilterResult,
    PreFilterResult,
    PreFlight,
    Restriction,
    StatusCodes,
)
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import Nodes, SimulatedNode, nodes_of

__all__ = [
    "Action",
    "BoolArray",
    "Code",
    "CycleState",
    "Depends",
    "Diagnosis",
    "Handle",
    "Hint",
    "IntArray",
    "NarrowArray",
    "Node",
    "NodeFilter",
    "NodeScore",
    "Nodes",
    "PluginArgs",
    "PluginError",
    "Pod",
    "PodInfo",
    "PostFilterResult",
    "PreFilterResult",
    "PreFlight",
    "Registrations",
    "Resource",
    "Restriction",
    "SimulatedNode",
    "Snapshot",
    "Status",
    "StatusCodes",
    "nodes_of",
    "on",
]
