from kubestow.library import (
    Explanation,
    FrozenDecision,
    InputError,
    LoadedCluster,
    SimulationResult,
    load_cluster,
    simulate,
)

__all__ = [
    "Explanation",
    "FrozenDecision",
    "InputError",
    "LoadedCluster",
    "SimulationResult",
    "load_cluster",
    "simulate",
]

__version__: str
