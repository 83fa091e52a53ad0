"""Values derived from waiting pods, kept while they wait.

Hint functions get a parked pod with every event that might help it, always as the same object. What
they derive from its spec is computed once.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from kubestow.api.pod import Pod

T = TypeVar("T")

# How many pods are kept, and how many terms, constraints or tolerations they have in all: a pod
# with thousands of them takes megabytes, and is kept with its value.
KEPT_MAX: Final = 16_384
PARTS_KEPT_MAX: Final = 131_072


class PerPod(Generic[T]):
    """`compute(pod)`, kept per object; the result must depend on nothing but the pod."""

    __slots__ = ("_compute", "_count", "_kept", "_part_count")

    def __init__(self, compute: Callable[[Pod], T], count: Callable[[Pod], int]) -> None:
        """`count(pod)` is how many parts of the pod are read."""
        self._compute = compute
        self._count = count
        # The pod is kept with its value, so that no other object can get its id.
        self._kept: OrderedDict[int, tuple[Pod, T]] = OrderedDict()
        self._part_count = 0

    def __call__(self, pod: Pod) -> T:
        kept = self._kept.get(id(pod))
        if kept is None:
            kept = self._kept[id(pod)] = pod, self._compute(pod)
            self._part_count += self._count(pod)
            while len(self._kept) > KEPT_MAX or self._part_count > PARTS_KEPT_MAX:
                _, (oldest, _) = self._kept.popitem(last=False)
                self._part_count -= self._count(oldest)
        return kept[1]
