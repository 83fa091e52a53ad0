"""Values derived from waiting pods, kept while they wait.

Hint functions get a parked pod with every event that might help it, always as the same object. What
they derive from its spec is computed once.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from kubestow.api.pod import Pod

T = TypeVar("T")

KEPT_MAX: Final = 16_384


class PerPod(Generic[T]):
    """`compute(pod)`, kept per object; the result must depend on nothing but the pod."""

    __slots__ = ("_compute", "_kept")

    def __init__(self, compute: Callable[[Pod], T]) -> None:
        self._compute = compute
        # The pod is kept with its value, so that no other object can get its id.
        self._kept: OrderedDict[int, tuple[Pod, T]] = OrderedDict()

    def __call__(self, pod: Pod) -> T:
        kept = self._kept.get(id(pod))
        if kept is None:
            kept = self._kept[id(pod)] = pod, self._compute(pod)
            if len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
        return kept[1]
