"""Which plugins of a profile have their answers reused for a pod, by what they declare."""

from collections.abc import Callable, Hashable, Sequence

from kubestow.api.pod_info import PodInfo
from kubestow.engine.equivalence.asked import Skipped
from kubestow.engine.equivalence.batch import RecordBatches
from kubestow.framework.profile import FilterStep, Profile, ScoreStep
from kubestow.framework.reuse import NO_REUSE, PodReads, Reuse, reuse_of

# What the answers of all `Reuse.unless` of a profile depend on besides the pod.
Versions = list[tuple[Callable[[], Hashable], Hashable]]


class ReusePlan:
    """Which plugins read the amounts of a pod as well (`by_amounts`), and which of these read
    nothing but requests (`by_requests`); whether one reads everything (`reads_all`)."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        declared = _reusable_plugins(profile)
        self.by_requests = _named(declared, lambda reuse: reuse.pod is PodReads.REQUESTS)
        self.by_amounts = self.by_requests | _named(
            declared, lambda reuse: reuse.pod is PodReads.AMOUNTS
        )
        self._names = _named(declared, lambda reuse: reuse.concerns is None)
        self.reads_all = any(reuse.pod is PodReads.ALL for reuse in declared.values())
        # The plugins that except the same pods have one bit.
        excepting: dict[Callable[[PodInfo], bool], list[str]] = {}
        for name, reuse in declared.items():
            if reuse.unless is not None:
                excepting.setdefault(reuse.unless, []).append(name)
        self._exceptions = [
            (1 << number, unless, names) for number, (unless, names) in enumerate(excepting.items())
        ]
        concerning = {name: reuse for name, reuse in declared.items() if reuse.concerns is not None}
        self._concerning = list(concerning)
        # Two bits for each: whether its Filter, and whether its Score, is to be asked.
        self._concerns = [
            (1 << 2 * number, reuse.concerns, reuse.concerns_filter, reuse.concerns_score)
            for number, reuse in enumerate(concerning.values())
            if reuse.concerns is not None
        ]
        self._skipped: dict[int, Skipped] = {}
        self._batches: dict[tuple[str, ...], RecordBatches] = {}
        # Plugins that read the same objects may give the same function.
        versions = [reuse.version for reuse in declared.values() if reuse.version is not None]
        self._versions = list(dict.fromkeys(versions))

    def frame_of(self, pod: PodInfo) -> Hashable:
        """Equal for pods that get the same answers, resources aside, from the same plugins."""
        return pod.full_shape if self.reads_all else pod.shape.frame, self._excepting(pod)

    def versions(self) -> Versions:
        """While these functions give the same values, so does `reused` for pods of one shape."""
        return [(version, version()) for version in self._versions]

    def reused(self, pod: PodInfo) -> frozenset[str]:
        """The plugins whose answers are reused for pods of this frame."""
        bits = self._excepting(pod)
        return self._names.difference(*(names for bit, _, names in self._exceptions if bits & bit))

    def _excepting(self, pod: PodInfo) -> int:
        """The bits of the plugins that except this pod."""
        bits = 0
        for bit, unless, _ in self._exceptions:
            if unless(pod):
                bits |= bit
        return bits

    def batches(self, filters: Sequence[FilterStep], scores: Sequence[ScoreStep]) -> RecordBatches:
        """Where records of these steps are computed together."""
        key = *(step.name for step in filters), "", *(step.name for step in scores)
        found = self._batches.get(key)
        if found is None:
            found = self._batches[key] = RecordBatches()
        return found

    def skipped(self, pod: PodInfo) -> Skipped:
        """The plugins that need not be asked about this pod; equal sets are one object."""
        asked = 0
        for bit, concerns, concerns_filter, concerns_score in self._concerns:
            if concerns(pod):
                if concerns_filter is None or concerns_filter(pod):
                    asked |= bit
                if concerns_score is None or concerns_score(pod):
                    asked |= bit << 1
        return self._skipped.get(asked) or self._find_skipped(asked)

    def _find_skipped(self, asked: int) -> Skipped:
        names = self._concerning
        found = self._skipped[asked] = Skipped(
            frozenset([name for number, name in enumerate(names) if not asked >> 2 * number & 1]),
            frozenset([name for number, name in enumerate(names) if not asked >> 2 * number & 2]),
        )
        return found


def _named(declared: dict[str, Reuse], holds: Callable[[Reuse], bool]) -> frozenset[str]:
    return frozenset(name for name, reuse in declared.items() if holds(reuse))


def _reusable_plugins(profile: Profile) -> dict[str, Reuse]:
    filters = {step.name for step in profile.filter_steps}
    scores = {step.name for step in profile.score_steps}
    names = dict.fromkeys(
        (
            *(name for name, _ in profile.pre_filter_steps),
            *(name for name, _ in profile.pre_score_steps),
            *filters,
            *scores,
        )
    )
    declared = {name: reuse_of(profile.plugins[name]) for name in names}
    return {
        name: reuse
        for name, reuse in declared.items()
        # A plugin reused at one point only would need its PreFilter or PreScore in any case.
        if reuse is not NO_REUSE
        and (name not in filters or reuse.filter is not None)
        and (name not in scores or reuse.score is not None)
    }
