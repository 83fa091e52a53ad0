"""What a policy sees: the same numbers in the environment and in the plugin.

All are between 0 and 1; amounts are shares of a machine larger than those of most clusters.
"""

import numpy as np
import numpy.typing as npt

from kubestow.plugin import Nodes

Floats = npt.NDArray[np.float64]

NODE_COLUMNS = ("cpu", "memory", "free cpu", "free memory", "free pods")
POD_COLUMNS = ("cpu", "memory")
# Milli-cpu and bytes that count as 1.
LARGEST = np.array([128_000, 1 << 40], np.float64)


def node_columns(nodes: Nodes) -> Floats:
    """float64[node, column], of each node: what it offers and what of that is free."""
    offered = nodes.basic_allocatable[:2]
    free = np.maximum(offered - nodes.basic_requested[:2], 0)
    free_pods = 1 - nodes.pod_count / np.maximum(nodes.allowed_pods, 1)
    amounts = np.concatenate([offered.T / LARGEST, free.T / LARGEST], axis=1)
    return np.clip(np.column_stack([amounts, free_pods]), 0, 1)


def pod_columns(cpu_milli: int, memory_bytes: int) -> Floats:
    """float64[column]: what the pod requests."""
    return np.clip(np.array([cpu_milli, memory_bytes], np.float64) / LARGEST, 0, 1)
