"""Placing pods in virtual time: once, over days, as a trace, under several schedulers."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from kubestow.config.feature_gates import parse_gates
from kubestow.editions import DEFAULT, edition_named
from kubestow.engine.decision import Decision
from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.errors import InputError
from kubestow.library.sources import Source, documents_of, scheduler_of, texts_of
from kubestow.simulator.comparison.comparison import SchedulerComparison
from kubestow.simulator.comparison.comparison import compare as compared
from kubestow.simulator.comparison.material import read_material
from kubestow.simulator.comparison.pool import LocalRunner
from kubestow.simulator.comparison.sweep import Sweep
from kubestow.simulator.comparison.variants import read_variants
from kubestow.simulator.defaults import LIMIT_S
from kubestow.simulator.input.pods import without_placements
from kubestow.simulator.results import RunResult
from kubestow.simulator.scenario.reading import read_scenario
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.scenario.source import parse_seconds
from kubestow.simulator.simulation import SimulationResult, place
from kubestow.simulator.traces.openb import openb_scenario
from kubestow.simulator.traces.plain import plain_scenario


def simulate(
    *sources: Source,
    config: str | Path | None = None,
    feature_gates: Iterable[str] = (),
    reschedule: bool = False,
    limit_s: float = LIMIT_S,
    on_decision: Callable[[FrozenDecision], None] | None = None,
    strict: bool = False,
) -> SimulationResult:
    """Place all waiting pods, in virtual time; `reschedule` forgets where pods run first.

    `on_decision` is called with every attempt. Raises InputError; `strict` as in `load_cluster`.
    """
    loaded, gates = scheduler_of(config, feature_gates)
    documents = documents_of(sources, strict=strict, gates=gates)
    if reschedule:
        documents = without_placements(documents)

    def note(decision: Decision) -> None:
        if on_decision is not None:
            on_decision(decision.freeze())

    return place(
        documents, loaded.config, loaded.registry, gates, limit_s=limit_s, on_decision=note
    )


def simulate_scenario(
    scenario: str | Path,
    *sources: Source,
    config: str | Path | None = None,
    feature_gates: Iterable[str] = (),
    seed: int | None = None,
    until: str | float | None = None,
    strict: bool = False,
) -> RunResult:
    """Play a scenario in virtual time, as `kubestow simulate --scenario` does.

    The sources are added to its cluster; `seed` and `until` ("24h", or seconds) replace those of
    the scenario. Raises InputError; `strict` as in `load_cluster`.
    """
    loaded, gates = scheduler_of(config, feature_gates)
    read = read_scenario(Path(scenario))
    if until is not None:
        read = msgspec.structs.replace(read, until_s=_until_s(until))
    if sources:
        more = documents_of(sources, strict=strict, gates=gates, makes_pods=False)
        read = msgspec.structs.replace(read, documents=[*read.documents, *more])
    return run_scenario(read, loaded.config, loaded.registry, gates, seed=seed)


def simulate_trace(
    pods: str | Path,
    *sources: Source,
    nodes: str | Path | None = None,
    trace: Literal["csv", "openb"] = "csv",
    config: str | Path | None = None,
    feature_gates: Iterable[str] = (),
    strict: bool = False,
) -> RunResult:
    """Play a trace in virtual time, as `kubestow simulate --trace` does.

    `pods` and `nodes` are its files; of a CSV trace, nodes may also be among the sources. Raises
    InputError; `strict` as in `load_cluster`.
    """
    loaded, gates = scheduler_of(config, feature_gates)
    if trace == "openb":
        if nodes is None or sources:
            raise InputError("a trace of the format openb has its nodes in a file: nodes=")
        scenario = openb_scenario(Path(nodes), Path(pods))
    else:
        scenario = plain_scenario(
            Path(pods),
            nodes=None if nodes is None else Path(nodes),
            documents=documents_of(sources, strict=strict, gates=gates, makes_pods=False),
        )
    return run_scenario(scenario, loaded.config, loaded.registry, gates)


def compare(
    *sources: Source,
    variants: Sequence[str],
    scenario: str | Path | None = None,
    recording: str | Path | None = None,
    seeds: Sequence[int] | None = None,
    jobs: int | None = None,
    feature_gates: Iterable[str] = (),
    limit_s: float = LIMIT_S,
    strict: bool = False,
) -> SchedulerComparison:
    """Run one cluster and workload under several schedulers, as `kubestow compare` does.

    `variants` are written as on the command line: "packed=config.yaml", "v1.9",
    "rack=acme.rack:RackSpread". The input is the sources, a scenario, or a recording. It runs in
    `jobs` copies of this process, by default one per core. A variant that cannot be run is among
    the `failures` of the result. Raises InputError; `strict` as in `load_cluster`.
    """
    gates = texts_of("feature_gates", feature_gates)
    read = read_variants(texts_of("variants", variants))
    wrong = next((each for each in read if each.problem), None)
    if wrong is not None:
        raise InputError(f'variant "{wrong.variant.name}": {wrong.problem}')
    material, first_seed = read_material(
        documents_of(
            sources,
            strict=strict,
            gates=parse_gates(gates, edition_named(DEFAULT)),
            makes_pods=scenario is None,
        ),
        name="cluster",
        scenario=None if scenario is None else Path(scenario),
        recording=None if recording is None else Path(recording),
        gates=gates,
        limit_s=limit_s,
    )
    chosen = [first_seed] if seeds is None else list(seeds)
    schedulers = [each.variant for each in read]
    task_count = max(len(schedulers) * len(chosen), 1)
    with LocalRunner(material, min(jobs or os.cpu_count() or 1, task_count)) as runner:
        sweep = Sweep(runner, schedulers, chosen).run(finds_reasons=True)
    return compared(material.name, schedulers, chosen, sweep)


def _until_s(until: str | float) -> float:
    try:
        until_s = parse_seconds(until) if isinstance(until, str) else float(until)
    except ValueError as error:
        raise InputError(f"until is {until!r}, expected a duration such as 24h") from error
    if not until_s > 0:
        raise InputError(f"until is {until!r}, expected more than 0")
    return until_s
