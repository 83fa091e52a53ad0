"""What scripts and notebooks import: `from kubestow import load_cluster, simulate`.

This and the contract of plugins (`kubestow.plugin`) are the only parts that outside programs should
import; both follow the version of the package. docs/reference/python.md describes it.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from kubestow.api.decode import convert
from kubestow.api.files import Document, load_documents
from kubestow.api.meta import JsonObject
from kubestow.api.pod import DEFAULT_SCHEDULER_NAME, Pod, is_assigned
from kubestow.apiserver.writes.defaults import apply_defaults
from kubestow.clock import SystemClock
from kubestow.config.decoding import load_config
from kubestow.config.feature_gates import FeatureGates, parse_gates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.config.validation import check_config
from kubestow.engine.decision import Decision
from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.errors import InputError, PluginError
from kubestow.explain.cluster import StillCluster
from kubestow.explain.explanation import Explanation
from kubestow.explain.pod import explain_pod
from kubestow.explain.suggestions import find_suggestions
from kubestow.explain.unplaced import unplaced
from kubestow.framework.plugin import Plugin
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.plugins.loading import LoadedPlugins, load_plugins
from kubestow.plugins.registry import REGISTRY
from kubestow.simulator.defaults import LIMIT_S
from kubestow.simulator.input.pods import without_placements
from kubestow.simulator.manifests import select_manifests
from kubestow.simulator.reports import files
from kubestow.simulator.reports.extra import require_extra
from kubestow.simulator.reports.simulated import run_of_simulation
from kubestow.simulator.results import RunResult
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.simulation import Simulation, SimulationResult
from kubestow.simulator.still import still_cluster
from kubestow.simulator.traces.openb import openb_scenario
from kubestow.simulator.traces.plain import plain_scenario
from kubestow.simulator.virtual_time import run_in_virtual_time

if TYPE_CHECKING:
    import polars

    from kubestow.simulator.reports.frames import Frames

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

# A file, a directory, or an object as it would be written in a file.
Source = str | Path | JsonObject


class LoadedCluster:
    """The nodes, pods and other objects at one moment; only `place` and `assign` change them."""

    def __init__(self, cluster: StillCluster) -> None:
        self._cluster = cluster

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes, in the order in which they are looked at."""
        return list(self._cluster.refresh().names)

    @property
    def pods(self) -> list[str]:
        """All pods as NAMESPACE/NAME."""
        return [
            f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in self._cluster.objects.pods
        ]

    @property
    def waiting_pods(self) -> list[str]:
        """The pods without a node, as NAMESPACE/NAME."""
        return [
            f"{pod.metadata.namespace}/{pod.metadata.name}"
            for pod in self._cluster.objects.pods
            if not is_assigned(pod)
        ]

    @property
    def columns(self) -> Nodes:
        """The nodes as arrays, as plugins read them; valid until the next placement."""
        return nodes_of(self._cluster.refresh())

    def explain(self, pod: str, *, node: str = "", suggestions: bool = True) -> Explanation:
        """Why a pod (NAMESPACE/NAME, or NAME in "default") is where it is, or waits.

        `node` asks every filter about that node. Raises InputError if there is no such pod or node.
        """
        found = self._pod(pod)
        if node and self._cluster.objects.nodes.get(node) is None:
            raise InputError(f'there is no node "{node}"')
        explanation = explain_pod(self._cluster, found, node=node)
        if suggestions and explanation.outcome in ("Unschedulable", "Gated"):
            changes = find_suggestions(self._cluster, found)
            explanation = msgspec.structs.replace(explanation, suggestions=changes)
        return explanation

    def decide(self, pod: str) -> FrozenDecision:
        """An attempt to place a pod, as arrays; a placed pod is taken off its node for it.

        Raises InputError if there is no such pod, or another scheduler places it.
        """
        found = self._pod(pod)
        if self._cluster.profile_of(found) is None:
            raise InputError(f'no profile has the schedulerName "{found.spec.scheduler_name}"')
        if not is_assigned(found):
            return self._cluster.decide(found).freeze()
        waiting, *others = unplaced(self._cluster, found)
        assert isinstance(waiting, Pod)
        with self._cluster.changed(waiting, *others):
            return self._cluster.decide(waiting).freeze()

    def assign(self, pod: str, node: str) -> None:
        """Put a waiting pod on a node, from now on; whether it fits is not checked.

        Raises InputError if there is no such pod or node, or the pod has a node.
        """
        found = self._pod(pod)
        if is_assigned(found):
            raise InputError(f'the pod "{pod}" is on node "{found.spec.node_name}"')
        if self._cluster.objects.nodes.get(node) is None:
            raise InputError(f'there is no node "{node}"')
        spec = msgspec.structs.replace(found.spec, node_name=node)
        self._cluster.put(msgspec.structs.replace(found, spec=spec))

    def place(self, pod: str | JsonObject) -> str:
        """Place one pod, of the cluster or a new one given as an object; return its node.

        Reserve of the plugins runs, and the pod is counted on its node from then on; Permit and
        binding are left out, and no pod is evicted. Returns "" if the pod fits nowhere, which
        changes nothing. Raises InputError if the pod is not one that waits, or another scheduler
        places it, and PluginError if the attempt fails.
        """
        found = self._pod(pod) if isinstance(pod, str) else self._new_pod(pod)
        if is_assigned(found):
            raise InputError(f'pod "{found.metadata.name}" is on "{found.spec.node_name}" already')
        if self._cluster.profile_of(found) is None:
            raise InputError(f'no profile has the schedulerName "{found.spec.scheduler_name}"')
        decision = self._cluster.place(found)
        if decision.status is not None and not decision.status.is_rejected:
            raise PluginError(decision.message)
        return decision.node_name

    def plugin(self, name: str, *, scheduler_name: str = DEFAULT_SCHEDULER_NAME) -> Plugin:
        """The plugin of this name that a profile has, to read what it keeps. Raises InputError."""
        profile = self._cluster.scheduler.profiles.get(scheduler_name)
        found = None if profile is None else profile.plugins.get(name)
        if found is None:
            raise InputError(f'no profile "{scheduler_name}" has a plugin "{name}"')
        return found

    def _new_pod(self, manifest: JsonObject) -> Pod:
        pod = convert(Pod, apply_defaults(manifest))
        namespace, name = pod.metadata.namespace or "default", pod.metadata.name
        if self._cluster.objects.pods.get(namespace, name) is not None:
            raise InputError(f'there is a pod "{namespace}/{name}" already')
        uid = pod.metadata.uid or f"{namespace}/{name}"
        metadata = msgspec.structs.replace(pod.metadata, namespace=namespace, uid=uid)
        return msgspec.structs.replace(pod, metadata=metadata)

    def _pod(self, key: str) -> Pod:
        namespace, slash, name = key.rpartition("/")
        found = self._cluster.objects.pods.get(namespace if slash else "default", name)
        if found is None:
            raise InputError(f'there is no pod "{key}"')
        return found


def load_cluster(
    *sources: Source, config: str | Path | None = None, feature_gates: Iterable[str] = ()
) -> LoadedCluster:
    """A cluster from files, directories and objects, as `kubestow simulate -f` reads them.

    `config` is a file with a KubeSchedulerConfiguration, `feature_gates` are texts such as
    "GangScheduling=true". Raises InputError.
    """
    loaded, gates = _scheduler(config, feature_gates)
    cluster = still_cluster(
        _documents(sources), loaded.config, SystemClock(), registry=loaded.registry, gates=gates
    )
    return LoadedCluster(cluster)


def simulate(
    *sources: Source,
    config: str | Path | None = None,
    feature_gates: Iterable[str] = (),
    reschedule: bool = False,
    limit_s: float = LIMIT_S,
    on_decision: Callable[[FrozenDecision], None] | None = None,
) -> SimulationResult:
    """Place all waiting pods, in virtual time; `reschedule` forgets where pods run first.

    `on_decision` is called with every attempt. Raises InputError.
    """
    loaded, gates = _scheduler(config, feature_gates)
    documents = _documents(sources)
    if reschedule:
        documents = without_placements(documents)

    def note(decision: Decision) -> None:
        if on_decision is not None:
            on_decision(decision.freeze())

    async def run() -> SimulationResult:
        simulation = Simulation(
            documents, loaded.config, registry=loaded.registry, on_decision=note, gates=gates
        )
        return await simulation.run(limit_s=limit_s)

    return run_in_virtual_time(run())


def simulate_trace(
    pods: str | Path,
    *sources: Source,
    nodes: str | Path | None = None,
    trace: Literal["csv", "openb"] = "csv",
    config: str | Path | None = None,
    feature_gates: Iterable[str] = (),
) -> RunResult:
    """Play a trace in virtual time, as `kubestow simulate --trace` does.

    `pods` and `nodes` are its files; of a CSV trace, nodes may also be among the sources. Raises
    InputError.
    """
    loaded, gates = _scheduler(config, feature_gates)
    if trace == "openb":
        if nodes is None or sources:
            raise InputError("a trace of the format openb has its nodes in a file: nodes=")
        scenario = openb_scenario(Path(nodes), Path(pods))
    else:
        scenario = plain_scenario(
            Path(pods),
            nodes=None if nodes is None else Path(nodes),
            documents=_documents(sources),
        )
    return run_scenario(scenario, loaded.config, loaded.registry, gates)


def write_report(result: RunResult | SimulationResult, path: str | Path) -> list[Path]:
    """Write a report, by the suffix of the name (docs/guides/reports.md); returns the files.

    Raises InputError, also if the extra `reports` is missing.
    """
    return files.write_report(_run(result), Path(path))


def frames(result: RunResult | SimulationResult) -> "Frames":
    """The rows of a result as data frames: `pods`, `nodes`, `samples` and `changes`."""
    require_extra("data frames", "polars")
    from kubestow.simulator.reports.frames import frames_of

    return frames_of(_run(result))


def attempts_frame(decisions: Iterable[FrozenDecision]) -> "polars.DataFrame":
    """A row for each attempt."""
    require_extra("data frames", "polars")
    from kubestow.simulator.reports import frames as made

    return made.attempts_frame(decisions)


def scores_frame(decisions: Iterable[FrozenDecision]) -> "polars.DataFrame":
    """A row for each attempt, feasible node and plugin; `attempt` counts from 0."""
    require_extra("data frames", "polars")
    from kubestow.simulator.reports import frames as made

    return made.scores_frame(decisions)


def _run(result: RunResult | SimulationResult) -> RunResult:
    return result if isinstance(result, RunResult) else run_of_simulation(result)


def _scheduler(
    config: str | Path | None, feature_gates: Iterable[str]
) -> tuple[LoadedPlugins, FeatureGates]:
    gates = parse_gates(feature_gates)
    if config is None:
        return LoadedPlugins(SchedulerConfig(), REGISTRY), gates
    loaded = load_config(str(config))
    check_config(loaded)
    return load_plugins(loaded), gates


def _documents(sources: Sequence[Source]) -> list[Document]:
    documents: list[Document] = []
    for number, source in enumerate(sources, start=1):
        if isinstance(source, dict):
            documents.append(Document(source, f"object {number}"))
        else:
            documents += load_documents([source])
    return select_manifests(documents).documents
