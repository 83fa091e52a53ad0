"""What `kubestow simulate` does: place a workload on a cluster in virtual time.

Not here: its options (`command`), where the cluster comes from (`cluster_input`), what is printed
of the result (`output`).
"""

from collections.abc import Sequence

from kubestow.api.files import Document
from kubestow.editions.flags import AlgorithmOptions
from kubestow.errors import InputError
from kubestow.plugins.loading import LoadedPlugins
from kubestow.service.commands.cluster_input import load_input
from kubestow.service.commands.scheduler_config import load_scheduler_config
from kubestow.service.commands.simulate.output import print_result
from kubestow.service.commands.simulate.request import (
    PLUGIN_FAILED,
    PODS_REFUSED,
    RunScheduler,
    SimulateRequest,
    check_outputs,
    require_no_trace_files,
    run_scheduler,
    written,
)
from kubestow.service.logging import warnings_on_stderr
from kubestow.service.output import progress_bar
from kubestow.simulator.defaults import LIMIT_S
from kubestow.simulator.gang_definitions import dialects_of
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.scenario.scenario import Progress
from kubestow.simulator.scenario.stages import placing
from kubestow.simulator.simulation import SimulationResult


def simulate_files(request: SimulateRequest) -> int:
    """Simulate and print the result; the exit code."""
    if request.until:
        raise InputError("--until is for --scenario; one placement has --limit")
    if request.seed is not None:
        raise InputError("--seed is for --scenario and --trace")
    require_no_trace_files(request)
    check_outputs(request)
    # Another edition has plugins of its own, which its configuration may name.
    is_modern = request.edition.is_modern
    gates = request.modern_gates()
    loaded = load_scheduler_config(request.config_file if is_modern else None, gates=gates)
    manifests = load_input(
        request.cluster,
        command="simulate",
        reads_config_maps=bool(request.algorithm.policy_configmap),
        dialects=dialects_of(loaded.config),
        gates=gates,
    )
    if request.record is not None and not is_modern:
        raise InputError("--record needs the scheduler of today: leave out --compatibility")
    scheduler = _scheduler(request, loaded, manifests.config_maps)
    limit_s = LIMIT_S if request.limit_s is None else request.limit_s
    scenario = placing(manifests.documents, limit_s=limit_s)
    with warnings_on_stderr(), progress_bar("Placing pods") as progress:
        task = progress.add_task("", total=None)

        def note(each: Progress) -> None:
            progress.update(task, total=each.arrived, completed=each.placed)

        run = run_scenario(
            scenario,
            scheduler.config,
            scheduler.registry,
            scheduler.gates,
            on_progress=note,
            record=request.record,
            factory=scheduler.factory,
            make_cluster=scheduler.make_cluster,
        )
    result = SimulationResult.of(run)
    print_result(result, request.output, has_headers=request.has_headers)
    written(run, request)
    if result.has_failed:
        return PLUGIN_FAILED
    if result.refused_pods:
        return PODS_REFUSED
    return 1 if request.is_failing_on_pending and result.pending else 0


def _scheduler(
    request: SimulateRequest, loaded: LoadedPlugins, config_maps: Sequence[Document]
) -> RunScheduler:
    has_config = request.config_file is not None or request.percentage is not None
    if not request.edition.has_plugins and has_config:
        raise InputError(
            "--config and --percentage-of-nodes-to-score are newer than v1.9; "
            "give a Policy with --policy"
        )
    if request.edition.is_modern and request.algorithm != AlgorithmOptions():
        raise InputError(
            "--policy and flags of older schedulers need --compatibility with an older version"
        )
    return run_scheduler(request, loaded, config_maps)
