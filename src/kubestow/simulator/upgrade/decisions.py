"""All waiting pods of a cluster, decided under both editions.

Pods have their turn in the order of the queue. After each, the decision of the version that is in
use now is carried out in both clusters: one difference must not make all later decisions differ.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kubestow.api.pod import Pod, is_assigned, key_of, priority_of
from kubestow.editions.noticed import NoticedChanges
from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.explain.cluster import StillCluster
from kubestow.explain.difference import explain_difference, view_of
from kubestow.explain.pod import hint_map_of
from kubestow.framework.events import (
    ASSIGNED_POD_DELETE,
    Action,
    ClusterEvent,
    Hint,
    HintFunction,
    Resource,
)
from kubestow.framework.hints import HintMap
from kubestow.plural import counted
from kubestow.simulator.upgrade.aspects import Aspect, AspectKind, message_of
from kubestow.simulator.upgrade.causes import CauseFinder, ComparedPod, anti_terms
from kubestow.simulator.upgrade.devices import taken_devices
from kubestow.simulator.upgrade.noted import NotedPods
from kubestow.simulator.upgrade.pair import EditionPair, waiting_pods
from kubestow.simulator.upgrade.report import Effect, UpgradeCause, UpgradeExample

_EXAMPLES_MAX: Final = 5
# How many times the hints on deleted pods are asked, in all.
_HINTS_MAX: Final = 100_000
_TAINT: Final = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)
_TAINT_WAKING: Final = Aspect(AspectKind.WAKING, "UpdateNodeTaint")
_TERM_WAKING: Final = Aspect(AspectKind.WAKING, "InterPodAffinity")
_MEMORY_WAKING: Final = Aspect(AspectKind.WAKING, "DefaultPreemption")
_OTHER_DEVICES: Final = Aspect(AspectKind.DEVICES, "DynamicResources")
_SIDES: Final = ("before", "after")
_UNEXPLAINED: Final = "not explained by any change that is known"


class ComparedPods(NamedTuple):
    compared: int
    differing: int
    causes: tuple[UpgradeCause, ...]
    left_out: tuple[str, ...]


def compare_pods(
    pair: EditionPair, noticed: NoticedChanges, on_progress: Callable[[int, int], None]
) -> ComparedPods:
    """Decide on every waiting pod; `on_progress` gets how many are done, and of how many."""
    comparison = PodComparison(pair)
    found = waiting_pods(pair.before)
    for done, pod in enumerate(found.pods):
        on_progress(done, len(found.pods))
        comparison.compare(pod)
    on_progress(len(found.pods), len(found.pods))
    return comparison.result(noticed, found.left_out)


class PodComparison:
    """Decides on pods one by one, and keeps what differs."""

    def __init__(self, pair: EditionPair) -> None:
        self._pair = pair
        self._noted = NotedPods(pair)
        self._finder = CauseFinder(pair, self._noted)
        self._waking = _WakingEvents(pair)
        self._tally = _Tally(is_back=pair.is_back)
        self._compared = self._missing = 0

    def result(self, noticed: NoticedChanges, left_out: Mapping[str, int]) -> ComparedPods:
        """`left_out`: how many pods were not compared, by reason."""
        texts = [f"{counted(count, 'pod')} {reason}" for reason, count in left_out.items()]
        if self._missing:
            texts.append(f"{counted(self._missing, 'pod')} that one version does not accept")
        if self._waking.is_spent:
            texts.append(f"hints on deleted pods after the first {_HINTS_MAX:,}")
        causes = self._tally.causes(noticed)
        return ComparedPods(self._compared, self._tally.differing, causes, tuple(texts))

    def pod_changed(self, pod: Pod) -> None:
        """Both clusters have this pod now, or do not have it any more."""
        self._noted.changed(pod)

    def compare(self, pod: Pod, node: str | None = None) -> None:
        """Note what differs for a waiting pod, and count it on its node in both clusters: the one
        given, or the one that the version in use now finds; on none if that is empty."""
        older, newer = self._pair.older, self._pair.newer
        mine, other = older.find(pod), newer.find(pod)
        if mine is None or other is None:
            self._missing += 1
            return
        self._compared += 1
        compared = ComparedPod(
            (mine, other), older.decide(mine).freeze(), newer.decide(other).freeze()
        )
        compared.aspects += self._waking.aspects(compared)
        compared.victim_in_memory = self._victim_in_memory(mine)
        if compared.victim_in_memory:
            compared.aspects.append(_MEMORY_WAKING)
        numbers = [self._finder.number_of(compared, each) for each in compared.aspects]
        if node is None:
            node = (compared.newer if self._pair.is_back else compared.older).node
        if node and self._has_other_devices(compared, node):
            compared.aspects.append(_OTHER_DEVICES)
            numbers.append(self._finder.number_of(compared, _OTHER_DEVICES))
        if compared.aspects or compared.older.node != compared.newer.node:
            self._tally.note(compared, numbers)

    def _has_other_devices(self, compared: ComparedPod, node: str) -> bool:
        """Count the pod on this node in both clusters, and compare what it gets there."""
        older, newer = self._pair.older, self._pair.newer
        # Decisions hold until the next one, and finding causes makes others.
        decisions = older.decide(compared.pods[0]), newer.decide(compared.pods[1])
        older.assume(decisions[0], node)
        newer.assume(decisions[1], node)
        if not compared.older.node == compared.newer.node == node:
            return False
        mine, other = taken_devices(decisions[0]), taken_devices(decisions[1])
        compared.devices = mine.text(other), other.text(mine)
        return mine != other

    def _victim_in_memory(self, pod: Pod) -> str:
        """The last victim of the pod if that is one of those that are not bound yet.

        For a running scheduler these are on their nodes already.
        """
        unbound = self._noted.unbound_below(priority_of(pod))
        if not unbound:
            return ""
        older = self._pair.older
        info_of = older.scheduler.cache.info_of
        placed = [info_of(each).assigned_to(each.status.nominated_node_name) for each in unbound]
        with older.changed(*(each.pod for each in placed)):
            victims = older.decide(pod).freeze().victims
        is_last = bool(victims) and victims[-1].uid in {each.metadata.uid for each in unbound}
        return victims[-1].key if is_last else ""


class _WakingEvents:
    """Which events wake a rejected pod in only one of the editions."""

    def __init__(self, pair: EditionPair) -> None:
        self._pair = pair
        self._maps = _hint_maps(pair.older), _hint_maps(pair.newer)
        self._asked = 0

    @property
    def is_spent(self) -> bool:
        return self._asked >= _HINTS_MAX

    def aspects(self, compared: ComparedPod) -> Iterator[Aspect]:
        if compared.older.node or compared.newer.node:
            return
        if self._is_woken(0, compared.older) != self._is_woken(1, compared.newer):
            yield _TAINT_WAKING
        is_rejected = "InterPodAffinity" in compared.older.unschedulable_plugins
        if is_rejected and self._differs_on_deletion(compared):
            yield _TERM_WAKING

    def _is_woken(self, side: int, decision: FrozenDecision) -> bool:
        """Whether a change of taints lets the pod be tried again."""
        return any(
            each.plugin in decision.unschedulable_plugins and each.event.matches(_TAINT)
            for each in self._maps[side][decision.profile]
        )

    def _differs_on_deletion(self, compared: ComparedPod) -> bool:
        """Whether some pod on a node wakes it in only one edition, if it were deleted."""
        profile = compared.older.profile
        hints = [_deletion_hints(maps[profile]) for maps in self._maps]
        for deleted in self._with_several_terms(compared.pods[0]):
            if self.is_spent:
                break
            self._asked += 1
            answers = [
                any(hint(pod, deleted, None) is Hint.QUEUE for hint in asked)
                for asked, pod in zip(hints, compared.pods, strict=True)
            ]
            if answers[0] != answers[1]:
                return True
        return False

    def _with_several_terms(self, waiting: Pod) -> Iterator[Pod]:
        """Pods on nodes that have several terms of anti-affinity, or all if the waiting pod has.

        With one term, "any of them" and "all of them" is the same.
        """
        if len(anti_terms(waiting)) > 1:
            yield from filter(is_assigned, self._pair.older.objects.pods)
            return
        for node in self._pair.older.scheduler.cache.nodes.values():
            for info in node.pods_with_required_anti_affinity:
                if len(anti_terms(info.pod)) > 1:
                    yield info.pod


def _hint_maps(cluster: StillCluster) -> Mapping[str, HintMap]:
    return {
        name: hint_map_of(cluster, profile) for name, profile in cluster.scheduler.profiles.items()
    }


def _deletion_hints(hint_map: HintMap) -> list[HintFunction]:
    return [
        each.hint
        for each in hint_map
        if each.plugin == "InterPodAffinity"
        and each.hint is not None
        and each.event.matches(ASSIGNED_POD_DELETE)
    ]


class _Tally:
    """Differences by the change that made them."""

    def __init__(self, *, is_back: bool) -> None:
        self._is_back = is_back
        self.differing = 0
        self._effects: dict[int, dict[str, int]] = {}
        self._examples: dict[int, list[UpgradeExample]] = {}

    def note(self, compared: ComparedPod, numbers: Sequence[int]) -> None:
        """`numbers` are the changes behind its aspects, in their order; 0 for an unknown one."""
        self.differing += 1
        plugins: dict[int, list[str]] = {} if numbers else {0: []}
        for aspect, number in zip(compared.aspects, numbers, strict=True):
            plugins.setdefault(number, []).append(aspect.plugin)
        for number, named in plugins.items():
            aspects = [
                aspect
                for aspect, each in zip(compared.aspects, numbers, strict=True)
                if each == number
            ]
            effect = _effect_of(*self._ordered(compared), {each.kind for each in aspects})
            effects = self._effects.setdefault(number, {})
            effects[effect] = effects.get(effect, 0) + 1
            examples = self._examples.setdefault(number, [])
            if len(examples) < _EXAMPLES_MAX:
                examples.append(self._example(compared, effect, aspects, named))

    def _ordered(self, compared: ComparedPod) -> tuple[FrozenDecision, FrozenDecision]:
        """The decision of the version in use now, then that of the other."""
        if self._is_back:
            return compared.newer, compared.older
        return compared.older, compared.newer

    def _example(
        self,
        compared: ComparedPod,
        effect: Effect,
        aspects: Sequence[Aspect],
        plugins: Sequence[str],
    ) -> UpgradeExample:
        before, after = self._ordered(compared)
        outcome = _evicted if _has_other_victims(aspects) else _outcome
        texts = outcome(before), outcome(after)
        if list(aspects) == [_MEMORY_WAKING]:
            texts = _activations(compared.victim_in_memory)
            texts = texts[::-1] if self._is_back else texts
        elif list(aspects) == [_OTHER_DEVICES]:
            texts = compared.devices[::-1] if self._is_back else compared.devices
        return UpgradeExample(
            pod=key_of(compared.pods[0]),
            effect=effect,
            before=texts[0],
            after=texts[1],
            plugins=tuple(dict.fromkeys(plugins)),
            why=_why(before, after),
        )

    def causes(self, noticed: NoticedChanges) -> tuple[UpgradeCause, ...]:
        """In the order of the table; what is not explained first."""
        return tuple(
            _cause(number, noticed, self._effects[number], self._examples[number])
            for number in sorted(self._effects)
        )


def _cause(
    number: int,
    noticed: NoticedChanges,
    effects: dict[str, int],
    examples: Sequence[UpgradeExample],
) -> UpgradeCause:
    change = noticed.change(number)
    return UpgradeCause(
        change=None if change is None else number,
        text=_UNEXPLAINED if change is None else change.text,
        section="" if change is None else change.section,
        pods=sum(effects.values()),
        effects=effects,
        examples=tuple(examples),
    )


def _effect_of(before: FrozenDecision, after: FrozenDecision, kinds: set[AspectKind]) -> Effect:
    if kinds == {AspectKind.WAKING}:
        return Effect.WOKEN
    if kinds == {AspectKind.DEVICES}:
        return Effect.DEVICES
    if before.node != after.node:
        if not after.node:
            return Effect.WAITS
        return Effect.MOVED if before.node else Effect.PLACED
    if before.node:
        return Effect.SCORES
    if kinds == {AspectKind.TEXT} or _victims(before) == _victims(after):
        return Effect.TEXT
    # With victims it has a place as soon as they are gone.
    if bool(before.victims) != bool(after.victims):
        return Effect.WAITS if before.victims else Effect.PLACED
    return Effect.EVICTS


def _why(before: FrozenDecision, after: FrozenDecision) -> str:
    """What decided between the nodes, as each version saw them."""
    if before.node == after.node:
        return ""
    texts = (
        explain_difference(other.node, None, view_of(mine, (other.node,))).summary
        for mine, other in ((before, after), (after, before))
    )
    return "; ".join(f"{side}: {text}" for side, text in zip(_SIDES, texts, strict=True) if text)


def _has_other_victims(aspects: Sequence[Aspect]) -> bool:
    return any(each.kind is AspectKind.VICTIMS for each in aspects)


def _victims(decision: FrozenDecision) -> tuple[str | None, tuple[str, ...]]:
    return decision.nominated_node, tuple(each.key for each in decision.victims)


def _outcome(decision: FrozenDecision) -> str:
    return decision.node or message_of(decision)


def _evicted(decision: FrozenDecision) -> str:
    if not decision.victims:
        return "evicts none"
    return f"evicts {', '.join(each.key for each in decision.victims)} on {decision.nominated_node}"


def _activations(victim: str) -> tuple[str, str]:
    evicts = f"evicts {victim}, which is not bound yet"
    return f"{evicts}, and waits for an event", f"{evicts}, and is tried again at once"
