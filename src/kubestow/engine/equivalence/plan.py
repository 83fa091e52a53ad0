"""Which plugins of a profile have their answers reused for a pod, by what they declare."""

from collections.abc import Callable, Hashable, Mapping
from operator import attrgetter
from typing import Final, cast

from kubestow.api.pod_info import PodInfo
from kubestow.engine.equivalence.asked import Skipped
from kubestow.framework.profile import Profile
from kubestow.framework.reuse import (
    ASKED,
    NO_REUSE,
    AskRowAnswers,
    Basis,
    Concern,
    PodReads,
    Reuse,
    VersionedBasis,
    reuse_of,
)

# Amounts are in no frame: one value for all pods.
_BASES: Final[Mapping[PodReads, Basis]] = {
    PodReads.REQUESTS: bool,
    PodReads.SPEC: attrgetter("frame"),
    PodReads.AMOUNTS: bool,
    PodReads.ALL: attrgetter("full_shape"),
    PodReads.CLUSTER: lambda _: Concern.BOTH,
}


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
        self._names = _named(declared, lambda reuse: reuse.pod is not PodReads.CLUSTER)
        self.reads_all = any(reuse.pod is PodReads.ALL for reuse in declared.values())
        # Plugins that read the same of a pod may have one function.
        bases: dict[Basis, list[str]] = {}
        for name, reuse in declared.items():
            if reuse.pod is not PodReads.CLUSTER:
                bases.setdefault(reuse.basis or _BASES[reuse.pod], []).append(name)
        self._bases = bases
        concerning = self._concerning = [name for name in declared if name not in self._names]
        # Two bits for each: whether its Filter, and whether its Score, is to be asked.
        concerns = [declared[name].basis or _BASES[PodReads.CLUSTER] for name in concerning]
        self._concerns = [
            (2 * number, cast(Callable[[PodInfo], int], concern))
            for number, concern in enumerate(concerns)
        ]
        self._skipped: dict[int, Skipped] = {}
        # Of these plugins some keep what they answer on all rows.
        answers = {name: getattr(profile.plugins[name], "row_answers", None) for name in concerning}
        self._answering = [(name, ask) for name, ask in answers.items() if ask is not None]
        self._versions = [basis.version for basis in bases if isinstance(basis, VersionedBasis)]

    def frame_of(self, pod: PodInfo) -> Hashable:
        """Equal for pods that get the same answers, resources aside, from the same plugins."""
        return tuple([basis(pod) for basis in self._bases])

    def versions(self) -> list[tuple[Callable[[], Hashable], Hashable]]:
        """While these functions give the same values, so does `frame_of` for pods of one shape."""
        return [(version, version()) for version in self._versions]

    def reused(self, pod: PodInfo) -> frozenset[str]:
        """The plugins whose answers are reused for pods of this frame."""
        found = self._bases.items()
        return self._names.difference(*(names for basis, names in found if basis(pod) is ASKED))

    def skipped(self, pod: PodInfo) -> Skipped:
        """The plugins that need not be asked about this pod; equal sets are one object."""
        asked = 0
        for shift, concern in self._concerns:
            asked |= concern(pod) << shift
        return self._skipped.get(asked) or self._find_skipped(asked)

    def answering(self, skipped: Skipped) -> tuple[str, AskRowAnswers] | None:
        """The first plugin that keeps what it answers on all rows, of those that are asked."""
        left_out = skipped.filter & skipped.score
        asked = (each for each in self._answering if each[0] not in left_out)
        return next(asked, None)

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
