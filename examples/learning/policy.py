"""A policy as a score for each node: the same weights for all of them.

So a policy that was trained on twelve nodes scores any number of nodes. It is linear in features
of a node as it would be with the pod on it: how much of it would be free, and how equally.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from learning.observation import Floats

FEATURES = (
    "free cpu",
    "free memory",
    "the smaller of both",
    "both multiplied",
    "difference of both",
    "square of the difference",
    "angle between what is free and the request",
    "cpu taken of what was free",
    "memory taken of what was free",
)
# Scores are whole numbers: this many to a unit.
RESOLUTION = 1_000_000


def features(nodes: Floats, pod: Floats) -> Floats:
    """float64[node, feature] of nodes on which the pod fits; other rows mean nothing.

    nodes   float64[node, column] and
    pod     float64[column], as in `observation`
    """
    offered, free = np.maximum(nodes[:, :2], 1e-12), nodes[:, 2:4]
    before, wanted = free / offered, pod / offered
    after = np.clip(before - wanted, 0, 1)
    cpu, memory = after[:, 0], after[:, 1]
    lengths = np.sqrt((before**2).sum(axis=1) * (wanted**2).sum(axis=1))
    taken = np.clip(wanted / np.maximum(before, 1e-12), 0, 1)
    return np.column_stack(
        [
            cpu,
            memory,
            np.minimum(cpu, memory),
            cpu * memory,
            np.abs(cpu - memory),
            (cpu - memory) ** 2,
            (before * wanted).sum(axis=1) / np.maximum(lengths, 1e-12),
            taken[:, 0],
            taken[:, 1],
        ]
    )


def scores_of(weights: Floats, nodes: Floats, pod: Floats) -> npt.NDArray[np.int64]:
    """int64[node]: how well the pod is placed on each node; the larger the better."""
    # Not a product of matrices: its last digits depend on how many nodes are asked about.
    sums = (features(nodes, pod) * weights).sum(axis=1)
    return np.rint(sums * RESOLUTION).astype(np.int64)


def ranked(scores: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """int64[node] in 0..100: 100 for the best, one less for each better distinct score."""
    _, better = np.unique(-scores, return_inverse=True)
    return np.maximum(100 - better, 0).astype(np.int64)


# --- files ---


def save_weights(path: str | Path, weights: Floats) -> None:
    pairs = zip(weights.tolist(), FEATURES, strict=True)
    lines = (f"{weight!r}  # {name}\n" for weight, name in pairs)
    Path(path).write_text("".join(lines), encoding="utf-8")


def load_weights(path: str | Path) -> Floats:
    """Raises ValueError if the file has no weight for each feature."""
    weights = np.loadtxt(path, ndmin=1)
    if weights.shape != (len(FEATURES),):
        raise ValueError(f"{path} has {weights.size} weights, expected {len(FEATURES)}")
    return weights
