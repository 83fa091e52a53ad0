"""DefaultPreemption as v1.20 reported it: at once, and with other texts (spec 08 A12)."""

from kubestow.framework.handle import Handle
from kubestow.plugins.default_preemption import DefaultPreemption
from kubestow.plugins.default_preemption.executor import Eviction, Executor


class DefaultPreemption120(DefaultPreemption):
    """Victims are chosen as today. The pod is not held back until they are gone."""

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._is_async = False
        self.executor = _Executor120(self.name, handle, is_async=False)


class _Executor120(Executor):
    def _note(self, eviction: Eviction) -> str:
        return f"Preempted by {eviction.preemptor.name} on node {eviction.node_name}"
