"""What scripts and notebooks import: `from kubestow import load_cluster, simulate`.

This and the contract of plugins (`kubestow.plugin`) are the only parts that outside programs should
import; both follow the version of the package. docs/reference/python.md describes it.

sources    clusters as scripts give them: files, objects, a live cluster; changes of these
cluster    a cluster that stands still: explain, decide, place
runs       virtual time: one placement, a scenario, a trace, several schedulers
capacity   how much room there is
data       reports and data frames
"""

from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.errors import InputError, InputWarning, PluginError
from kubestow.explain.explanation import Explanation
from kubestow.library.capacity import drain_check, fit, headroom, need
from kubestow.library.cluster import LoadedCluster, load_cluster
from kubestow.library.data import attempts_frame, frames, scores_frame, write_report
from kubestow.library.runs import compare, simulate, simulate_scenario, simulate_trace
from kubestow.library.sources import apply_suggestion, change_cluster, read_cluster
from kubestow.simulator.comparison.comparison import SchedulerComparison
from kubestow.simulator.results import RunResult
from kubestow.simulator.simulation import SimulationResult

__all__ = [
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
]
