"""All checks of one plugin."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, Final

import msgspec

from kubestow.api.decode import to_document
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.clock import Clock
from kubestow.framework.answers import status_answer, truth_answer, wrong_answer
from kubestow.framework.events import Action, Hint, Registrations, Resource
from kubestow.framework.faults import fault_error
from kubestow.framework.plugin import (
    EventPlugin,
    FilterPlugin,
    PostFilterPlugin,
    PreEnqueuePlugin,
    PreFilterExtensions,
    QueueSortPlugin,
)
from kubestow.framework.reuse import reuse_of
from kubestow.framework.runner import run_post_filter
from kubestow.framework.status import Code
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.queue import QueuedPod
from kubestow.simulator.simulation import place
from kubestow.testing.builders import make_pod
from kubestow.testing.plugin_check.answers import (
    ANSWER_CHECKS,
    FORMS,
    TYPES,
    Asked,
    answer_faults,
    has_two_forms,
)
from kubestow.testing.plugin_check.generated import Generator, LabelTexts, label_texts
from kubestow.testing.plugin_check.in_a_row import in_a_row_fault
from kubestow.testing.plugin_check.loading import Loaded, Side, load
from kubestow.testing.plugin_check.reuse import reuse_fault
from kubestow.testing.plugin_check.signatures import methods_of, signature_faults
from kubestow.testing.plugin_check.trials import trial_faults
from kubestow.testing.profiles import make_profile

OK = "ok"
FAILED = "failed"
SKIPPED = "skipped"


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of one check: ok, failed or skipped; `detail` says what, with which pod."""

    check: str
    result: str
    detail: str = ""


class Duration(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    method: str
    node_count: int
    microseconds_per_node: float


class PluginReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    plugin: str
    methods: tuple[str, ...]
    findings: tuple[Finding, ...]
    durations: tuple[Duration, ...]

    @property
    def has_failed(self) -> bool:
        return any(finding.result == FAILED for finding in self.findings)


_SEEDS: Final = range(6)
_NODE_COUNT: Final = 12
_POD_COUNT: Final = 8
_SIMULATED_S: Final = 60
_TIMED_NODE_COUNT: Final = 1000
_NO_ANSWERS: Final = "the plugin has neither filter nor score"

SIGNATURES: Final = "methods and their parameters"
EMPTY: Final = "a cluster without nodes"
QUEUE: Final = "pre_enqueue, less and hints"
IN_A_ROW: Final = "several pods in a row"
REUSE: Final = "reuse"
TRIALS: Final = "add_pod and remove_pod"
POST_FILTER: Final = "post_filter"
SCHEDULER: Final = "a whole scheduler"


def check_plugin(reference: str, args: object, clock: Clock) -> PluginReport:
    """Check the class that `module:Class` names; ConfigError if no scheduler starts with it."""
    loaded = load(reference, args)
    plugin = Side(loaded, reuses_answers=False).plugin
    methods = methods_of(plugin)
    faults = [*signature_faults(plugin)]
    findings = [_finding(SIGNATURES, ["; ".join(faults)] if faults else [])]
    durations: list[Duration] = []
    if not faults:
        texts = label_texts(plugin, args)
        findings += _findings_of_answers(loaded, texts)
        findings.append(_finding(EMPTY, _faults_without_nodes(loaded, texts)))
        findings.append(_queue_finding(loaded, texts))
        findings.append(_trial_finding(loaded, texts))
        findings.append(_post_filter_finding(loaded, texts))
        # What follows repeats a fault that was found already, for every pod.
        if not _have_failed(findings):
            findings.append(_in_a_row_finding(loaded, texts))
            findings.append(_reuse_finding(loaded, texts))
            findings.append(_finding(SCHEDULER, _scheduler_faults(loaded, texts)))
            durations = [*_durations(loaded, texts, clock)]
    return PluginReport(
        plugin=loaded.name, methods=methods, findings=tuple(findings), durations=tuple(durations)
    )


def _have_failed(findings: Iterable[Finding]) -> bool:
    return any(finding.result == FAILED for finding in findings)


def _finding(check: str, faults: Iterable[str]) -> Finding:
    first = next(iter(faults), None)
    return Finding(check=check, result=OK if first is None else FAILED, detail=first or "")


# --- filter and score ---


def _findings_of_answers(loaded: Loaded, texts: LabelTexts) -> Iterator[Finding]:
    first: dict[str, str] = {}
    plugin = Side(loaded, reuses_answers=False).plugin
    has_answers = _has_answers(loaded)
    for seed in _SEEDS if has_answers else ():
        generator = Generator(seed, texts)
        side, pods = _cluster(loaded, generator, _NODE_COUNT)
        for pod in pods:
            for fault in answer_faults(side, pod, generator.rng):
                first.setdefault(fault.check, f"pod {pod.name} of seed {seed}: {fault.text}")
    for check in ANSWER_CHECKS:
        reason = ""
        if not has_answers:
            reason = _NO_ANSWERS
        elif check != TYPES and TYPES in first:
            reason = "answers are wrong"
        elif check == FORMS and not has_two_forms(plugin):
            reason = "the plugin has one form"
        if reason:
            yield Finding(check=check, result=SKIPPED, detail=reason)
        else:
            yield _finding(check, [first[check]] if check in first else [])


def _has_answers(loaded: Loaded) -> bool:
    plugin = Side(loaded, reuses_answers=False).plugin
    return not {"filter", "score"}.isdisjoint(methods_of(plugin))


def _cluster(loaded: Loaded, generator: Generator, count: int) -> tuple[Side, list[PodInfo]]:
    """Nodes with pods on half of them, and pods that wait."""
    cache, side = Cache(), Side(loaded, reuses_answers=False)
    nodes = [generator.node(number) for number in range(count)]
    pods = [PodInfo(generator.pod(number)) for number in range(_POD_COUNT)]
    for node in nodes:
        cache.add_node(node)
    for number in range(count // 2):
        placed = PodInfo(generator.pod(1000 + number))
        cache.add_pod(placed.assigned_to(nodes[number].metadata.name))
    side.show(cache, nodes, [pod.pod for pod in pods])
    return side, pods


def _faults_without_nodes(loaded: Loaded, texts: LabelTexts) -> Iterator[str]:
    generator = Generator(0, texts)
    side, pods = _cluster(loaded, generator, 0)
    for pod in pods[:1]:
        yield from (fault.text for fault in answer_faults(side, pod, generator.rng))


# --- the queue ---


def _queue_finding(loaded: Loaded, texts: LabelTexts) -> Finding:
    side, pods = _cluster(loaded, Generator(0, texts), _NODE_COUNT)
    plugin = side.plugin
    if not isinstance(plugin, PreEnqueuePlugin | QueueSortPlugin | EventPlugin):
        return Finding(check=QUEUE, result=SKIPPED, detail="the plugin has none of them")
    return _finding(QUEUE, _queue_faults(plugin, pods, [*side.objects.nodes.list()]))


def _queue_faults(plugin: Any, pods: list[PodInfo], nodes: list[Node]) -> Iterator[str]:
    calls: list[Callable[[], object]] = []
    name = plugin.name
    if isinstance(plugin, PreEnqueuePlugin):
        check = plugin.pre_enqueue
        calls += [
            lambda pod=pod: status_answer(check(pod.pod), name, "pre_enqueue") for pod in pods
        ]
    if isinstance(plugin, QueueSortPlugin):
        less = plugin.less
        entries = [QueuedPod(pod, timestamp_ns=number) for number, pod in enumerate(pods)]
        for first in entries:
            for second in entries:
                calls.append(lambda one=first, other=second: _compare(less, one, other, name))
    if isinstance(plugin, EventPlugin):
        calls += [*_hint_calls(plugin.events(), name, [pod.pod for pod in pods], nodes)]
    for call in calls:
        try:
            call()
        except BaseException as error:  # A fault of the plugin, as in the scheduler.
            yield str(fault_error(error, name, QUEUE))


def _compare(less: Callable[..., object], first: QueuedPod, second: QueuedPod, name: str) -> None:
    is_less = truth_answer(less(first, second), name, "less")
    if is_less and truth_answer(less(second, first), name, "less"):
        raise wrong_answer(name, "less both ways", True, "an order: one of two pods goes first")


def _hint_calls(
    events: Registrations, name: str, pods: list[Pod], nodes: list[Node]
) -> Iterator[Callable[[], object]]:
    """Calls of the hints on nodes and pods, with the objects that the events would have."""
    objects = {Resource.NODE: nodes, Resource.POD: pods}
    for event, hint in events:
        changed = objects.get(event.resource)
        if hint is None or not changed:
            continue
        for old, new in pairwise(changed):
            before = None if event.action is Action.ADD else old
            after = None if event.action is Action.DELETE else new
            yield lambda hint=hint, old=before, new=after: _ask(hint, pods[0], old, new, name)


def _ask(hint: Callable[..., object], pod: Pod, old: object, new: object, name: str) -> None:
    answer = hint(pod, old, new)
    if not isinstance(answer, Hint):
        raise wrong_answer(name, "a hint", answer, "Hint.QUEUE or Hint.SKIP")


# --- preemption ---


def _trial_finding(loaded: Loaded, texts: LabelTexts) -> Finding:
    plugin = Side(loaded, reuses_answers=False).plugin
    if not isinstance(plugin, PreFilterExtensions) or not isinstance(plugin, FilterPlugin):
        return Finding(check=TRIALS, result=SKIPPED, detail="the plugin has none of them")
    found = (
        f"seed {seed}: {fault}"
        for seed in _SEEDS
        for fault in trial_faults(loaded, Generator(seed, texts))
    )
    return _finding(TRIALS, found)


def _post_filter_finding(loaded: Loaded, texts: LabelTexts) -> Finding:
    side, _ = _cluster(loaded, Generator(0, texts), _NODE_COUNT)
    if not isinstance(side.plugin, PostFilterPlugin):
        return Finding(check=POST_FILTER, result=SKIPPED, detail="the plugin has none")
    too_large = PodInfo(make_pod("too-large", cpu="1000", priority=9))
    side.objects.put(too_large.pod)
    decision = side.decide_again(too_large)
    alone = make_profile(side.plugin)
    _, status = run_post_filter(alone, decision.state, too_large, decision.diagnosis)
    return _finding(POST_FILTER, [status.message] if status.code is Code.ERROR else [])


# --- several pods, reuse and the whole scheduler ---


def _in_a_row_finding(loaded: Loaded, texts: LabelTexts) -> Finding:
    if not _has_answers(loaded):
        return Finding(check=IN_A_ROW, result=SKIPPED, detail=_NO_ANSWERS)
    found = ((seed, in_a_row_fault(loaded, Generator(seed, texts))) for seed in _SEEDS)
    return _finding(IN_A_ROW, (f"seed {seed}: {text}" for seed, text in found if text is not None))


def _reuse_finding(loaded: Loaded, texts: LabelTexts) -> Finding:
    declared = reuse_of(Side(loaded, reuses_answers=False).plugin)
    if declared.filter is None and declared.score is None:
        return Finding(check=REUSE, result=SKIPPED, detail="the plugin declares none")
    found = ((seed, reuse_fault(loaded, Generator(seed, texts))) for seed in _SEEDS)
    return _finding(REUSE, (f"seed {seed}: {text}" for seed, text in found if text is not None))


def _scheduler_faults(loaded: Loaded, texts: LabelTexts) -> Iterator[str]:
    """Conditions of pods that failed, with all plugins and all points up to the binding."""
    generator = Generator(0, texts)
    objects = [
        *(generator.node(number) for number in range(_NODE_COUNT)),
        *(generator.pod(number) for number in range(2 * _POD_COUNT)),
    ]

    documents = map(to_document, objects)
    result = place(documents, loaded.config, loaded.registry, limit_s=_SIMULATED_S)
    for pod in result.pods:
        if pod.reason == "SchedulerError":
            yield f"pod {pod.name}: {pod.message}"


# --- time ---


def _durations(loaded: Loaded, texts: LabelTexts, clock: Clock) -> Iterator[Duration]:
    """How long calls about many nodes take: the shorter of two, for the pod that takes longest."""
    side, pods = _cluster(loaded, Generator(0, texts), _TIMED_NODE_COUNT)
    nodes = nodes_of(side.snapshot)
    for method in ("filter", "score"):
        if method not in methods_of(side.plugin):
            continue
        longest_s = 0.0
        for pod in pods:
            asked = Asked(side, pod)
            ask = asked.verdicts if method == "filter" else asked.scores
            answered = nodes if method == "filter" else asked.feasible(nodes)
            duration_s = min(_seconds(ask, answered, clock) for _ in range(2))
            longest_s = max(longest_s, duration_s / max(len(answered), 1))
        yield Duration(
            method=method,
            node_count=len(nodes),
            microseconds_per_node=round(longest_s * 1e6, 3),
        )


def _seconds(ask: Callable[[Nodes], object], nodes: Nodes, clock: Clock) -> float:
    start_s = clock.monotonic_s()
    ask(nodes)
    return clock.monotonic_s() - start_s
