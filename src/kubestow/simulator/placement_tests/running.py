"""Runs cases, each in a copy of this process, and the failures of a case in copies of that.

A case is built, played and judged once. Then every failure of its forEach goes on from a copy of
the placed cluster. Without `os.fork`, cases run one after the other in this process, and each
failure from the start of its case (`run_alone`): the results are equal.
"""

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Final

import msgspec

from kubestow import collector as garbage
from kubestow.api.pod import Pod, key_of
from kubestow.cluster.resources import PODS
from kubestow.errors import InputError, KubestowError
from kubestow.framework.faults import describe, place_of
from kubestow.simulator.forks import CAN_FORK, Forks, Received, Send
from kubestow.simulator.placement_tests.cases import PlacementCase
from kubestow.simulator.placement_tests.causes import source_of, with_causes
from kubestow.simulator.placement_tests.drains import unfinished
from kubestow.simulator.placement_tests.for_each import (
    TriedFailure,
    failures_of,
    result_of,
    smallest_of,
    verdicts_after,
)
from kubestow.simulator.placement_tests.history import is_live
from kubestow.simulator.placement_tests.judged import message_of
from kubestow.simulator.placement_tests.results import (
    BreakingFailure,
    CaseResult,
    ExpectationVerdict,
    PlacementRun,
    PodPlace,
    run_of,
)
from kubestow.simulator.placement_tests.room import room_of
from kubestow.simulator.placement_tests.state import PlacedCluster

# Cases that one copy of the process runs after each other.
CASES_PER_COPY: Final = 16


class _Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a copy sends: how many pieces of work there are more, or done; or its result."""

    number: int = 0
    added: int = 0
    done: int = 0
    case: CaseResult | None = None
    broken: BreakingFailure | None = None
    problem: str = ""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`keeps_pods`: results have where each pod is. `explains`: failed expectations have causes."""

    jobs: int = 1
    keeps_pods: bool = False
    explains: bool = True


class RunProgress(msgspec.Struct, frozen=True):
    """How many cases and failures there are so far, and how many are done."""

    total: int
    done: int


def run_cases(
    cases: Sequence[PlacementCase],
    options: RunOptions,
    *,
    on_progress: Callable[[RunProgress], None] = lambda _: None,
) -> PlacementRun:
    """All cases, in their order; after KeyboardInterrupt those that are done."""
    results: dict[int, CaseResult] = {}
    total, done, is_partial = len(cases), 0, False
    messages = _messages(cases, options)
    try:
        for number, message in messages:
            total += message.added
            done += message.done
            if message.case is not None:
                results[number] = message.case
            on_progress(RunProgress(total, done))
    except KeyboardInterrupt:
        is_partial = True
        messages.close()
    return run_of([results[number] for number in sorted(results)], is_partial=is_partial)


def _messages(
    cases: Sequence[PlacementCase], options: RunOptions
) -> Generator[tuple[int, _Message]]:
    """Messages of each case, with its position."""
    if not CAN_FORK:
        for number, case in enumerate(cases):
            yield number, _Message(done=1, case=run_case(case, options))
        return
    chunks = list(_chunks(cases, options.jobs))
    with closing(Forks(options.jobs)) as forks:
        works = [partial(_run_in_copy, chunk, options, forks) for chunk in chunks]
        # Closed first: it ends the copies that still run.
        with closing(forks.run(works)) as receiving:
            yield from _of_copies(chunks, receiving)


def _of_copies(
    chunks: "Sequence[_Chunk]", receiving: Iterable[Received]
) -> Iterator[tuple[int, _Message]]:
    """The messages of copies; a case whose copy ended before it has an error as its result."""
    missing = {number: case for chunk in chunks for number, case in chunk}
    for received in receiving:
        if received.message is not None:
            message = msgspec.json.decode(received.message, type=_Message)
            if message.case is not None:
                del missing[message.number]
            yield message.number, message
            continue
        for number, case in chunks[received.number]:
            if number in missing:
                result = _error_result(case, received.problem or "it has no result")
                yield number, _Message(done=1, case=result)


# Positions and cases that one copy runs.
_Chunk = list[tuple[int, PlacementCase]]


def _chunks(cases: Sequence[PlacementCase], jobs: int) -> Iterator[_Chunk]:
    """Cases for each copy: one with failures alone, others together."""
    size = min(CASES_PER_COPY, math.ceil(len(cases) / (4 * jobs)))
    chunk: _Chunk = []
    for number, case in enumerate(cases):
        if case.for_each:
            yield [(number, case)]
            continue
        chunk.append((number, case))
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _run_in_copy(chunk: _Chunk, options: RunOptions, forks: Forks, send: Send) -> None:
    for number, case in chunk:

        def report(message: _Message, number: int = number) -> None:
            send(msgspec.json.encode(msgspec.structs.replace(message, number=number)))

        report(_Message(done=1, case=run_case(case, options, forks, report)))


def run_case(
    case: PlacementCase,
    options: RunOptions,
    forks: Forks | None = None,
    report: Callable[[_Message], None] = lambda _: None,
) -> CaseResult:
    """One case; what goes wrong is part of the result."""
    try:
        return _played(case, options, forks, report)
    except KubestowError as error:
        return _error_result(case, str(error))
    except Exception as error:  # A plugin of a user may raise anything.
        return _error_result(case, describe(error, place_of(error)))


def _played(
    case: PlacementCase,
    options: RunOptions,
    forks: Forks | None,
    report: Callable[[_Message], None],
) -> CaseResult:
    with garbage.settled(garbage.SIMULATION_THRESHOLDS), played(case) as (cluster, verdicts):
        verdicts += [cluster.judge(each) for each in case.expectations]
        pods = tuple(_pods(cluster)) if options.keeps_pods else ()
        room = room_of(cluster) if options.keeps_pods else None
        for_each = None
        if case.for_each:
            failures = failures_of(cluster)
            broken = _broken(cluster, failures, options, forks, report)
            for_each = result_of(case, failures, broken)
        if options.explains:
            verdicts = with_causes(cluster, verdicts)
    is_passed = all(verdict.holds for verdict in verdicts) and (
        for_each is None or not for_each.broken_count
    )
    return CaseResult(
        name=case.name,
        file=case.file,
        test=case.test,
        matrix=dict(case.matrix),
        status="passed" if is_passed else "failed",
        verdicts=tuple(verdicts),
        for_each=for_each,
        notes=tuple(cluster.notes),
        pods=pods,
        room=room,
    )


@contextmanager
def played(case: PlacementCase) -> Generator[tuple[PlacedCluster, list[ExpectationVerdict]]]:
    """The cluster after `given`, and the verdicts of its steps; it ends with the block."""
    cluster = PlacedCluster(case)
    try:
        cluster.start()
        verdicts: list[ExpectationVerdict] = []
        for step in case.steps:
            verdicts += cluster.play(step)
        yield cluster, verdicts
    finally:
        cluster.close()


# --- Failures -----------------------------------------------------------------------------------


def run_alone(case: PlacementCase, failure: TriedFailure) -> list[ExpectationVerdict]:
    """The verdicts after one failure, played from the start of the case."""
    with played(case) as (cluster, _):
        return _after(cluster, failure)


def _after(cluster: PlacedCluster, failure: TriedFailure) -> list[ExpectationVerdict]:
    """The verdicts, and that of a drain that does not end."""
    verdicts = verdicts_after(cluster, failure)
    held_up = unfinished(cluster, failure)
    return verdicts if held_up is None else [*verdicts, held_up]


def _broken(
    cluster: PlacedCluster,
    failures: Sequence[TriedFailure],
    options: RunOptions,
    forks: Forks | None,
    report: Callable[[_Message], None],
) -> list[BreakingFailure]:
    """The failures after which something does not hold, in their order."""
    report(_Message(added=len(failures)))
    if forks is None:
        found = [_broken_by(failure, run_alone(cluster.case, failure)) for failure in failures]
        report(_Message(done=len(failures)))
        return [each for each in found if each is not None]
    broken: dict[int, BreakingFailure] = {}
    works = [partial(_fail_in_copy, cluster, failure) for failure in failures]
    with forks.lent():
        for received in forks.run(works):
            if received.message is None:
                if received.problem:
                    raise InputError(f"{failures[received.number].name}: {received.problem}")
                report(_Message(done=1))
                continue
            message = msgspec.json.decode(received.message, type=_Message)
            if message.problem:
                raise InputError(message.problem)
            if message.broken is not None:
                broken[received.number] = message.broken
    found = [broken[number] for number in sorted(broken)]
    return _with_causes_of_smallest(cluster, found, failures, options, forks)


def _fail_in_copy(cluster: PlacedCluster, failure: TriedFailure, send: Send) -> None:
    try:
        broken = _broken_by(failure, _after(cluster, failure))
    except KubestowError as error:
        send(msgspec.json.encode(_Message(problem=str(error))))
        return
    if broken is not None:
        send(msgspec.json.encode(_Message(broken=broken)))


def _broken_by(
    failure: TriedFailure, verdicts: Sequence[ExpectationVerdict]
) -> BreakingFailure | None:
    failed = tuple(verdict for verdict in verdicts if not verdict.holds)
    if not failed:
        return None
    return BreakingFailure(
        name=failure.name,
        nodes=failure.nodes,
        size=failure.size,
        entry=failure.entry,
        verdicts=failed,
    )


def _with_causes_of_smallest(
    cluster: PlacedCluster,
    broken: list[BreakingFailure],
    failures: Sequence[TriedFailure],
    options: RunOptions,
    forks: Forks,
) -> list[BreakingFailure]:
    """The failures; the smallest, which reports show, with the decisions behind it."""
    smallest = smallest_of(broken)
    if smallest is None or not options.explains:
        return broken
    named = (smallest.entry, smallest.name)
    failure = next(each for each in failures if (each.entry, each.name) == named)

    def explain(send: Send) -> None:
        verdicts = [each for each in _after(cluster, failure) if not each.holds]
        explained = msgspec.structs.replace(
            smallest, verdicts=tuple(with_causes(cluster, verdicts))
        )
        send(msgspec.json.encode(explained))

    with forks.lent():
        for received in forks.run([explain]):
            if received.message is not None:
                explained = msgspec.json.decode(received.message, type=BreakingFailure)
                return [explained if each is smallest else each for each in broken]
    return broken


# --- Results ------------------------------------------------------------------------------------


def _pods(cluster: PlacedCluster) -> Iterator[PodPlace]:
    for stored in cluster.store.objects_of(PODS):
        pod = stored.typed
        if isinstance(pod, Pod) and is_live(pod):
            yield PodPlace(
                pod=key_of(pod),
                owner=cluster.owner_of(pod),
                node=pod.spec.node_name,
                message="" if pod.spec.node_name else message_of(pod),
                source=source_of(cluster, pod),
            )


def _error_result(case: PlacementCase, error: str) -> CaseResult:
    return CaseResult(
        name=case.name,
        file=case.file,
        test=case.test,
        matrix=dict(case.matrix),
        status="error",
        error=error,
    )
