from kubestow.library import (
    Explanation,
    FrozenDecision,
    InputError,
    LoadedCluster,
    RunResult,
    SimulationResult,
    attempts_frame,
    frames,
    load_cluster,
    scores_frame,
    simulate,
    simulate_trace,
    write_report,
)

__all__ = [
    "Explanation",
    "FrozenDecision",
    "InputError",
    "LoadedCluster",
    "RunResult",
    "SimulationResult",
    "attempts_frame",
    "frames",
    "load_cluster",
    "scores_frame",
    "simulate",
    "simulate_trace",
    "write_report",
]

__version__: str
