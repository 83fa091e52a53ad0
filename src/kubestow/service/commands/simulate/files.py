"""What `kubestow simulate` does: place a workload on a cluster in virtual time.

Not here: its options (`command`), where the cluster comes from (`cluster_input`), what is printed
of the result (`output`).
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from kubestow.api.files import Document
from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.editions.algorithm_options import AlgorithmOptions
from kubestow.errors import InputError
from kubestow.plugins.loading import LoadedPlugins
from kubestow.service.commands.cluster_input import load_input
from kubestow.service.commands.scheduler_config import checked_gates, load_scheduler_config
from kubestow.service.commands.simulate.output import print_result
from kubestow.service.commands.simulate.request import (
    PLUGIN_FAILED,
    PODS_REFUSED,
    SimulateRequest,
    check_outputs,
    with_percentage,
    written,
)
from kubestow.service.logging import warnings_on_stderr
from kubestow.service.output import progress_bar
from kubestow.simulator.defaults import LIMIT_S
from kubestow.simulator.gang_definitions import dialects_of
from kubestow.simulator.manifests import Manifests
from kubestow.simulator.reports.simulated import run_of_simulation
from kubestow.simulator.simulation import Simulation, SimulationResult
from kubestow.simulator.virtual_time import run_in_virtual_time


def simulate_files(request: SimulateRequest) -> int:
    """Simulate and print the result; the exit code."""
    if request.until or request.seed is not None:
        raise InputError("--until and --seed need --scenario")
    if request.nodes is not None or request.pods is not None:
        raise InputError("--nodes and --pods are files of a trace: give its format with --trace")
    check_outputs(request)
    # Another edition has plugins of its own, which its configuration may name.
    is_modern = request.edition.is_modern
    loaded = load_scheduler_config(request.config_file if is_modern else None)
    manifests = load_input(
        request.cluster,
        command="simulate",
        reads_config_maps=bool(request.algorithm.policy_configmap),
        dialects=dialects_of(loaded.config),
        gates=checked_gates(request.feature_gates) if is_modern else DEFAULT_GATES,
    )
    if request.record is not None and not is_modern:
        raise InputError("--record needs the scheduler of today: leave out --compatibility")
    make = _maker(request, manifests, loaded)
    with warnings_on_stderr(), progress_bar("Placing pods") as progress:
        task = progress.add_task("", total=None)

        def note(decision: _Decision) -> None:
            progress.advance(task, 1 if decision.is_scheduled else 0)

        async def run() -> SimulationResult:
            simulation = make(note)
            progress.update(task, total=simulation.waiting_count)
            return await simulation.run(
                limit_s=LIMIT_S if request.limit_s is None else request.limit_s
            )

        result = run_in_virtual_time(run())
    print_result(result, request.output, has_headers=request.has_headers)
    written(run_of_simulation(result), request)
    if result.has_failed:
        return PLUGIN_FAILED
    if result.refused_pods:
        return PODS_REFUSED
    return 1 if request.is_failing_on_pending and result.pending else 0


def _maker(
    request: SimulateRequest, manifests: Manifests, loaded: LoadedPlugins
) -> "_MakeSimulation":
    documents = manifests.documents
    if not request.edition.has_plugins:
        if request.config_file is not None or request.percentage is not None:
            raise InputError(
                "--config and --percentage-of-nodes-to-score are newer than v1.9; "
                "give a Policy with --policy"
            )
        return _of_v1_9(documents, manifests.config_maps, request)
    if not request.edition.is_modern:
        return _edition_with_plugins(documents, manifests.config_maps, request)
    if request.algorithm != AlgorithmOptions():
        raise InputError(
            "--policy and flags of older schedulers need --compatibility with an older version"
        )
    return _with_plugins(documents, request, loaded)


class _Decision(Protocol):
    @property
    def is_scheduled(self) -> bool: ...


class _Simulation(Protocol):
    @property
    def waiting_count(self) -> int: ...

    async def run(self, *, limit_s: float) -> SimulationResult: ...


# Makes a simulation that calls a listener with every decision; called in the loop it runs in.
_MakeSimulation = Callable[[Callable[[_Decision], None]], _Simulation]


def _with_plugins(
    documents: Sequence[Document], request: SimulateRequest, loaded: LoadedPlugins
) -> _MakeSimulation:
    gates = checked_gates(request.feature_gates)
    config, registry = loaded
    config = with_percentage(config, request)
    return lambda note: Simulation(
        documents,
        config,
        registry=registry,
        on_decision=note,
        gates=gates,
        record=request.record,
    )


def _edition_with_plugins(
    documents: Sequence[Document], config_maps: Sequence[Document], request: SimulateRequest
) -> _MakeSimulation:
    # Imported here, like every other edition: only when it is to run.
    from kubestow.editions.choosing import rules_of
    from kubestow.editions.simulating import plugins_config

    rules, choice = rules_of(request.edition), request.choice()
    config, registry = plugins_config(request.config_file, choice, rules, config_maps)
    config = with_percentage(config, request)
    return lambda note: Simulation(
        documents, config, registry=registry, on_decision=note, factory=rules.factory
    )


def _of_v1_9(
    documents: Sequence[Document], config_maps: Sequence[Document], request: SimulateRequest
) -> _MakeSimulation:
    from kubestow.editions.simulating import v1_9_simulation

    return v1_9_simulation(documents, config_maps, request.choice())
