"""What `kubestow simulate --trace` does: plays a trace in virtual time."""

from pathlib import Path

import msgspec

from kubestow.errors import InputError
from kubestow.service.commands.cluster_input import InputRequest, load_input
from kubestow.service.commands.scheduler_config import checked_gates, load_scheduler_config
from kubestow.service.commands.simulate.play import play
from kubestow.service.commands.simulate.request import (
    SimulateRequest,
    check_outputs,
    exit_code_of,
    with_percentage,
    written,
)
from kubestow.service.commands.simulate.run_output import print_run
from kubestow.service.formats import TraceFormat
from kubestow.simulator.gang_definitions import dialects_of
from kubestow.simulator.reports.files import report_of
from kubestow.simulator.scenario.scenario import Scenario
from kubestow.simulator.traces.openb import openb_scenario
from kubestow.simulator.traces.plain import plain_scenario


def simulate_trace(request: SimulateRequest) -> int:
    """Play the trace, print its result and write reports; the exit code."""
    if not request.edition.is_modern:
        raise InputError("--trace needs the scheduler of today: leave out --compatibility")
    check_outputs(request)
    loaded = load_scheduler_config(request.config_file)
    gates = checked_gates(request.feature_gates)
    config = with_percentage(loaded.config, request)
    scenario = _scenario(request, dialects_of(config))
    if request.limit_s is not None:
        scenario = msgspec.structs.replace(scenario, until_s=request.limit_s)
    result = play(
        scenario, config, loaded.registry, gates, seed=request.seed, record=request.record
    )
    report = report_of(result)
    print_run(report, request.output, has_headers=request.has_headers)
    written(report, request)
    return exit_code_of(report, request)


def _scenario(request: SimulateRequest, dialects: frozenset[str]) -> Scenario:
    cluster = request.cluster
    if request.pods is None:
        raise InputError("--trace needs --pods with the file of its pods")
    if request.trace is TraceFormat.OPENB:
        if request.nodes is None or cluster != InputRequest():
            raise InputError(
                "--trace openb takes its nodes from --nodes and nothing else: give --nodes and "
                "leave out -f, --from-cluster and changes of the cluster"
            )
        return openb_scenario(request.nodes, request.pods)
    return _plain(request, request.pods, dialects)


def _plain(request: SimulateRequest, pods: Path, dialects: frozenset[str]) -> Scenario:
    has_manifests = bool(request.cluster.files) or request.cluster.is_live
    if request.nodes is None and not has_manifests:
        raise InputError("--trace csv needs nodes: --nodes with a CSV file, or -f with manifests")
    documents = (
        load_input(
            request.cluster, command="simulate", dialects=dialects, makes_pods=False
        ).documents
        if has_manifests
        else ()
    )
    return plain_scenario(pods, nodes=request.nodes, documents=documents)
