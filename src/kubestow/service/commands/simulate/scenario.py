"""What `kubestow simulate --scenario` does: plays a scenario in virtual time."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec

from kubestow.api.files import Document
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions.flags import AlgorithmOptions
from kubestow.errors import InputError
from kubestow.files import keeping
from kubestow.redaction import printable
from kubestow.service.commands.cluster_input import load_input
from kubestow.service.commands.scheduler_config import load_scheduler_config
from kubestow.service.commands.simulate.play import play
from kubestow.service.commands.simulate.request import (
    SimulateRequest,
    check_outputs,
    exit_code_of,
    require_no_trace_files,
    run_scheduler,
    written,
)
from kubestow.service.commands.simulate.run_output import print_run
from kubestow.service.output import stderr
from kubestow.simulator.gang_definitions import dialects_of
from kubestow.simulator.input.changes import InputChanges
from kubestow.simulator.reports.files import report_of
from kubestow.simulator.results import RunResult
from kubestow.simulator.scenario.reading import read_scenario
from kubestow.simulator.scenario.scenario import Scenario
from kubestow.simulator.scenario.source import parse_seconds

# Kinds that one placement does not read.
_OF_CONTROLLERS: Final = ("CronJob",)


def simulate_scenario(request: SimulateRequest) -> int:
    """Play the scenario, print its result and write reports; the exit code."""
    check_outputs(request)
    check_scenario(request)
    assert request.scenario is not None
    loaded = load_scheduler_config(
        request.config_file if request.edition.is_modern else None, gates=request.modern_gates()
    )
    scheduler = run_scheduler(request, loaded)
    scenario = read_scenario(request.scenario)
    if request.until:
        scenario = msgspec.structs.replace(scenario, until_s=until_s_of(request.until))
    extra = _extra_documents(request, scheduler.config)
    scenario = msgspec.structs.replace(scenario, documents=[*scenario.documents, *extra])
    result = play(
        scenario,
        scheduler.config,
        scheduler.registry,
        scheduler.gates,
        seed=request.seed,
        record=request.record,
        factory=scheduler.factory,
        make_cluster=scheduler.make_cluster,
    )
    report = report_of(result)
    print_run(report, request.output, has_headers=request.has_headers)
    _print_failures(result, scenario)
    written(report, request)
    return exit_code_of(report, request)


def check_scenario(request: SimulateRequest) -> None:
    """InputError if options do not go with a scenario."""
    is_modern = request.edition.is_modern
    if request.trace is not None:
        raise InputError("--scenario and --trace exclude each other")
    require_no_trace_files(request)
    if request.limit_s is not None:
        raise InputError("--limit is for one placement; with --scenario use --until, such as 24h")
    if request.cluster.changes != InputChanges():
        raise InputError(
            "--cordon, --drain, --add-nodes, --remove-pods and --reschedule change the cluster of "
            "one placement; a scenario has actions for this"
        )
    if not request.edition.has_plugins and (
        request.config_file is not None or request.percentage is not None
    ):
        raise InputError(
            "--config and --percentage-of-nodes-to-score are newer than v1.9; "
            "give a Policy with --policy"
        )
    if request.algorithm.policy_configmap:
        raise InputError("a scenario reads no ConfigMap: give the Policy with --policy")
    if request.record is not None and not is_modern:
        raise InputError("--record needs the scheduler of today: leave out --compatibility")
    if is_modern and request.algorithm != AlgorithmOptions():
        raise InputError(
            "--policy and flags of older schedulers need --compatibility with an older version"
        )


def until_s_of(text: str) -> float:
    """What `--until` says; InputError if it is no duration."""
    try:
        until_s = parse_seconds(text)
    except ValueError as error:
        raise InputError(f'--until is "{text}", expected a duration such as 24h') from error
    if until_s <= 0:
        raise InputError(f'--until is "{text}", expected more than 0')
    return until_s


def _extra_documents(request: SimulateRequest, config: SchedulerConfig) -> Sequence[Document]:
    cluster = request.cluster
    if not cluster.names_a_cluster():
        return ()
    dialects = dialects_of(config)
    return load_input(
        cluster,
        command="simulate",
        dialects=dialects,
        also_read=_OF_CONTROLLERS,
        makes_pods=False,
    ).documents


def _print_failures(result: RunResult, scenario: Scenario) -> None:
    """Where the pods come from whose attempts failed."""
    for failure in result.failures:
        place = scenario.places.get(failure.owner)
        if place is not None:
            stderr().print(printable(f"{place}: {failure.message}"), markup=False)


def write_template(path: Path, *, force: bool = False) -> None:
    """Write the scenario that a user begins with; InputError if there is a file already."""
    text = files("kubestow.simulator.scenario").joinpath("template.yaml").read_bytes()
    keeping.require_new(path, "--save-template", force=force)
    try:
        keeping.write(path, text, force=force)
    except OSError as error:
        raise InputError(f'cannot write "{path}": {error.strerror}') from error
    stderr().print(f"scenario written: {path}", markup=False)
