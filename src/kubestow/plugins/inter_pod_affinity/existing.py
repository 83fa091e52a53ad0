"""What the terms of running pods come to for a pod that they select (spec 06 §6.2.5, §6.2.8)."""

from typing import Final, NamedTuple

from kubestow.api.pod_info import AffinityTerm
from kubestow.index.topology.measures import Exposure, Pull
from kubestow.index.topology.reading import Reading, terms

_FORBIDS: Final = Pull(required_anti_affinity=1)

# For how many sets of terms readings are kept; beyond it, all are dropped.
EXPOSED_MAX: Final = 1024


class Pulling(NamedTuple):
    """The sum of the weights of the terms with one key. `hits` is 0 only if there are none: weights
    may add up to 0, and the difference matters."""

    hits: Reading
    pull: Reading


class Exposed(NamedTuple):
    """The counts for pods that the same terms select, by topology key."""

    forbidding: tuple[Reading, ...] = ()
    pulling: tuple[Pulling, ...] = ()

    @property
    def is_any(self) -> bool:
        """Whether some term selects the pod."""
        return bool(self.forbidding)


_UNEXPOSED: Final = Exposed()


class ExistingTerms:
    """The weights of running pods' terms for other pods; the weight is the plugin's argument."""

    def __init__(self, hard_pod_affinity_weight: int) -> None:
        self.pull: Final = Pull(
            required_affinity=hard_pod_affinity_weight,
            preferred_affinity=1,
            preferred_anti_affinity=-1,
            is_weighted=True,
        )
        # Required anti-affinity never scores: where it matters the node is not feasible.
        self.hits: Final = Pull(
            required_affinity=int(hard_pod_affinity_weight > 0),
            preferred_affinity=1,
            preferred_anti_affinity=1,
        )
        self._exposed: dict[frozenset[AffinityTerm], Exposed] = {}

    def exposed(self, selecting: frozenset[AffinityTerm]) -> Exposed:
        """The counts for pods that these terms select."""
        if not selecting:
            return _UNEXPOSED
        exposed = self._exposed.get(selecting)
        if exposed is None:
            if len(self._exposed) >= EXPOSED_MAX:
                self._exposed.clear()
            exposed = self._exposed[selecting] = self._readings(selecting)
        return exposed

    def _readings(self, selecting: frozenset[AffinityTerm]) -> Exposed:
        keys = dict.fromkeys([term.topology_key for term in selecting])
        return Exposed(
            tuple([terms(Exposure(selecting, key, _FORBIDS)) for key in keys]),
            tuple(
                [
                    Pulling(
                        terms(Exposure(selecting, key, self.hits)),
                        terms(Exposure(selecting, key, self.pull)),
                    )
                    for key in keys
                ]
            ),
        )
