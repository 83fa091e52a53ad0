"""Which plugins of a profile have their answers reused for a pod, by what they declare."""

from collections.abc import Hashable

from kubestow.api.pod_info import PodInfo
from kubestow.framework.profile import Profile
from kubestow.framework.reuse import NO_REUSE, Reuse, reuse_of

# What the answers of all `Reuse.unless` of a profile depend on besides the shape.
Versions = tuple[Hashable, ...]


class ReusePlan:
    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        declared = _reusable_plugins(profile)
        self._names = frozenset(declared)
        self._conditions = [
            (name, reuse.unless) for name, reuse in declared.items() if reuse.unless is not None
        ]
        self._versions = [reuse.version for reuse in declared.values() if reuse.version is not None]

    def versions(self) -> Versions:
        """While these stay the same, so does `reused` for pods of one shape."""
        return tuple([version() for version in self._versions])

    def reused(self, pod: PodInfo) -> frozenset[str]:
        """The plugins whose answers are reused for pods of this shape."""
        return self._names.difference(
            [name for name, is_excepted in self._conditions if is_excepted(pod)]
        )


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
