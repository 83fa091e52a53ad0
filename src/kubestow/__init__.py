"""kubestow: a Kubernetes scheduler that decides as kube-scheduler does.

The folders follow the architecture; the `__init__.py` of each says what it is for. Imports go one
way, from `service` at the top down to `api`. Nothing is imported here, so that using one part does
not load the others: what scripts use (`__init__.pyi` lists it) is imported at its first use.
"""

from importlib import import_module

__version__ = "0.1.0"

_LIBRARY = (
    "Explanation",
    "FrozenDecision",
    "InputError",
    "InputWarning",
    "LoadedCluster",
    "PluginError",
    "RunResult",
    "SchedulerComparison",
    "SimulationResult",
    "apply_suggestion",
    "attempts_frame",
    "change_cluster",
    "compare",
    "drain_check",
    "fit",
    "frames",
    "headroom",
    "load_cluster",
    "need",
    "read_cluster",
    "scores_frame",
    "simulate",
    "simulate_scenario",
    "simulate_trace",
    "write_report",
)


def __getattr__(name: str) -> object:
    if name in _LIBRARY:
        return getattr(import_module("kubestow.library"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted((*_LIBRARY, "__version__"))
