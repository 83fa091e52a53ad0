"""What `kubestow simulate --trace` does: plays a trace in virtual time."""

from collections.abc import Sequence

import msgspec

from kubestow.api.files import Document
from kubestow.editions.flags import AlgorithmOptions
from kubestow.errors import InputError
from kubestow.service.commands.cluster_input import InputRequest, load_input
from kubestow.service.commands.scheduler_config import load_scheduler_config
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
from kubestow.simulator.traces.any_format import read_trace
from kubestow.simulator.virtual_time import EPOCH


def simulate_trace(request: SimulateRequest) -> int:
    """Play the trace, print its result and write reports; the exit code."""
    if not request.edition.is_modern:
        raise InputError("--trace needs the scheduler of today: leave out --compatibility")
    if request.until:
        raise InputError("--until is for --scenario; a trace is cut with --limit SECONDS")
    if request.algorithm != AlgorithmOptions():
        raise InputError("--policy is for older schedulers, which play no traces")
    check_outputs(request)
    gates = request.modern_gates()
    loaded = load_scheduler_config(request.config_file, gates=gates)
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
    assert request.trace is not None
    if request.trace in (TraceFormat.OPENB, TraceFormat.ALIBABA_2018):
        if request.nodes is None or cluster != InputRequest(force=cluster.force):
            raise InputError(
                f"--trace {request.trace} takes its nodes from --nodes and nothing else: give "
                "--nodes and leave out -f, --from-cluster and changes of the cluster"
            )
        documents: Sequence[Document] = ()
    else:
        documents = _cluster(request, dialects)
    return read_trace(
        request.trace.value,
        pods=request.pods,
        nodes=request.nodes,
        usage=request.usage,
        documents=documents,
        start_s=EPOCH.timestamp(),
    )


def _cluster(request: SimulateRequest, dialects: frozenset[str]) -> Sequence[Document]:
    """The nodes of a trace whose files need not have them."""
    has_manifests = request.cluster.names_a_cluster()
    if request.nodes is None and not has_manifests:
        raise InputError(
            f"--trace {request.trace} needs nodes: --nodes with a CSV file, or -f with manifests"
        )
    return (
        load_input(
            request.cluster, command="simulate", dialects=dialects, makes_pods=False
        ).documents
        if has_manifests
        else ()
    )
