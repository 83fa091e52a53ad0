from kubestow.library import (
    Cluster,
    Explanation,
    FrozenDecision,
    InputError,
    SimulationResult,
    load_cluster,
    simulate,
)

__all__ = [
    "Cluster",
    "Explanation",
    "FrozenDecision",
    "InputError",
    "SimulationResult",
    "load_cluster",
    "simulate",
]

__version__: str
