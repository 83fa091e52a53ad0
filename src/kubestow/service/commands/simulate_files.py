"""What `kubestow simulate` does: place a workload on a cluster, both from files, in virtual time.

Not here: its options (`simulate`), what is printed of the result (`simulate_output`).
"""

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

import msgspec

from kubestow.api.files import Document, load_documents
from kubestow.engine.factory import SchedulerFactory
from kubestow.errors import InputError
from kubestow.service.commands.compatibility import AlgorithmOptions, Compatibility
from kubestow.service.commands.scheduler_config import checked_gates, load_scheduler_config
from kubestow.service.commands.simulate_output import print_result
from kubestow.service.formats import OutputFormat
from kubestow.service.logging import warnings_on_stderr
from kubestow.service.output import progress_bar
from kubestow.simulator.manifests import (
    Manifests,
    select_manifests,
    unknown_field_texts,
    without_placements,
)
from kubestow.simulator.simulation import Simulation, SimulationResult
from kubestow.simulator.virtual_time import run_in_virtual_time

_FIELDS_SHOWN: Final = 10
_PLUGIN_FAILED: Final = 3  # the exit code


class SimulateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    files: Sequence[str]
    output: OutputFormat
    has_headers: bool
    limit_s: float
    is_rescheduling: bool
    is_strict: bool
    config_file: Path | None
    percentage: int | None
    feature_gates: Sequence[str]
    is_failing_on_pending: bool
    compatibility: Compatibility
    algorithm: AlgorithmOptions


def simulate_files(request: SimulateRequest) -> int:
    """Simulate and print the result; the exit code."""
    manifests = _load(request.files, reads_config_maps=bool(request.algorithm.policy_configmap))
    report_unknown_fields(manifests.documents, is_strict=request.is_strict)
    make = _maker(request, manifests)
    with warnings_on_stderr(), progress_bar("Placing pods") as progress:
        task = progress.add_task("", total=None)

        def note(decision: _Decision) -> None:
            progress.advance(task, 1 if decision.is_scheduled else 0)

        async def run() -> SimulationResult:
            simulation = make(note)
            progress.update(task, total=simulation.waiting_count)
            return await simulation.run(limit_s=request.limit_s)

        result = run_in_virtual_time(run())
    print_result(result, request.output, has_headers=request.has_headers)
    if result.has_failed:
        return _PLUGIN_FAILED
    return 1 if request.is_failing_on_pending and result.pending else 0


def _maker(request: SimulateRequest, manifests: Manifests) -> "_MakeSimulation":
    documents = manifests.documents
    if request.is_rescheduling:
        documents = without_placements(documents)
    if request.compatibility is Compatibility.V1_9:
        if request.config_file is not None or request.percentage is not None:
            raise InputError(
                "--config and --percentage-of-nodes-to-score are newer than v1.9; "
                "give a Policy with --policy-config-file"
            )
        return _of_v1_9(documents, manifests.config_maps, request.algorithm)
    if request.algorithm != AlgorithmOptions():
        raise InputError("flags of older schedulers need --compatibility v1.9")
    return _with_plugins(documents, request)


def _load(files: Sequence[str], *, reads_config_maps: bool) -> Manifests:
    """The objects in the files that a scheduler reads; what is ignored is reported."""
    if not files:
        raise InputError("nothing to simulate: name files with -f, for example -f cluster.yaml")
    for file in files:
        if "://" in file:
            raise InputError(
                f"-f does not read addresses; run: curl -sSL {shlex.quote(file)} | "
                "kubestow simulate -f -"
            )
    loaded = load_documents(files)
    if not loaded:
        raise InputError(f"no objects in {', '.join(files)}")
    manifests = select_manifests(loaded, reads_config_maps=reads_config_maps)
    if text := manifests.ignored_text():
        print(text, file=sys.stderr)
    return manifests


def report_unknown_fields(documents: Sequence[Document], *, is_strict: bool) -> None:
    """Warn of fields that Kubernetes does not have; if strict, InputError."""
    texts = unknown_field_texts(documents)
    if is_strict and texts:
        more = f"; there are {len(texts) - 1} more" if len(texts) > 1 else ""
        raise InputError(texts[0] + more)
    for text in texts[:_FIELDS_SHOWN]:
        print(f"warning: {text}", file=sys.stderr)
    if len(texts) > _FIELDS_SHOWN:
        print(f"warning: {len(texts) - _FIELDS_SHOWN} more unknown fields", file=sys.stderr)


class _Decision(Protocol):
    @property
    def is_scheduled(self) -> bool: ...


class _Simulation(Protocol):
    @property
    def waiting_count(self) -> int: ...

    async def run(self, *, limit_s: float) -> SimulationResult: ...


# Makes a simulation that calls a listener with every decision; called in the loop it runs in.
_MakeSimulation = Callable[[Callable[[_Decision], None]], _Simulation]


def _with_plugins(documents: Sequence[Document], request: SimulateRequest) -> _MakeSimulation:
    factory, gates = _factory_of(request.compatibility), checked_gates(request.feature_gates)
    config, registry = load_scheduler_config(request.config_file)
    if request.percentage is not None:
        config = msgspec.structs.replace(config, percentage_of_nodes_to_score=request.percentage)
    return lambda note: Simulation(
        documents, config, registry=registry, on_decision=note, factory=factory, gates=gates
    )


def _factory_of(compatibility: Compatibility) -> type[SchedulerFactory]:
    if compatibility is Compatibility.TODAY:
        return SchedulerFactory
    # Imported here, like all legacy code: only when an older version is to run.
    from kubestow.engine.legacy.factory import FACTORIES

    return FACTORIES[compatibility]


def _of_v1_9(
    documents: Sequence[Document], config_maps: Sequence[Document], options: AlgorithmOptions
) -> _MakeSimulation:
    from kubestow.service.commands.legacy import v1_9_simulation

    return v1_9_simulation(documents, config_maps, options)
