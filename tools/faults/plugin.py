"""An out-of-tree plugin that now and then raises an exception or returns a wrong answer.

Without a fault it rejects only pods that are held back for too long, and has them tried again. A
pod's annotations say how long it is held back at Permit, once, and how long its PreBind takes.
"""

import asyncio
from contextvars import ContextVar
from typing import Any, ClassVar, Final, TypeVar

from kubestow.api.pod import Pod
from kubestow.errors import PluginError
from kubestow.plugin import (
    Action,
    CycleState,
    Handle,
    IntArray,
    Nodes,
    PodInfo,
    PreFlight,
    Registrations,
    Resource,
    Status,
    on,
)
from tools.faults.fault import Fault, Point
from tools.faults.moments import Moment, Surroundings

HOLD_ANNOTATION: Final = "faults.example.com/hold-s"
PREPARE_ANNOTATION: Final = "faults.example.com/prepare-s"
REFERENCE: Final = "tools.faults.plugin:Unsteady"
# A pod that is not released at Permit in this time is rejected.
PERMIT_TIMEOUT_S: Final = 3.0

# Set in the context of each replica, in which its plugins are made.
surroundings: ContextVar[Surroundings] = ContextVar("surroundings")

A = TypeVar("A")

_RAISED: Final = (ValueError, KeyError, PluginError, MemoryError, asyncio.CancelledError)
_JUNK: Final = ("junk", 7, (), object())


class Unsteady:
    name: ClassVar[str] = "Unsteady"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        self._handle = handle
        self._around = surroundings.get()
        # Pods that were held back once, by UID.
        self._held: set[str] = set()

    def events(self) -> Registrations:
        return on(Resource.NODE, Action.ADD), on(Resource.POD, Action.DELETE)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        return self._answer(Point.PRE_FILTER, None)

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        return self._answer(Point.FILTER, None)

    def filter_status(self, state: CycleState, code: int) -> Status:
        raise PluginError(f"no node has code {code}")

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int:
        return self._answer(Point.SCORE, 0)

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        return self._answer(Point.RESERVE, None)

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        return self._answer(Point.UNRESERVE, None)

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        hold_s = 0.0 if pod.uid in self._held else seconds_in(pod.pod, HOLD_ANNOTATION)
        if not hold_s:
            return self._answer(Point.PERMIT, (None, 0.0))
        self._held.add(pod.uid)
        loop = asyncio.get_running_loop()
        loop.call_later(hold_s, self._release, pod.pod)
        # The pod is held back once this cycle has ended.
        loop.call_soon(self._around.reach, Moment.PERMIT, pod.pod, node_name)
        return self._answer(Point.PERMIT, (Status.wait(), PERMIT_TIMEOUT_S))

    def _release(self, pod: Pod) -> None:
        waiting = self._handle.waiting_pods.get(pod.metadata.uid)
        # A rejected pod has its entry until its binding cycle goes on: after a pause of the process
        # both timers end in one turn of the loop.
        if waiting is not None and not waiting.is_rejected:
            waiting.allow(self.name)
        else:
            self._handle.activate([pod])  # Once more.

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> PreFlight:
        has_work = seconds_in(pod.pod, PREPARE_ANNOTATION) > 0
        return self._answer(Point.PRE_FLIGHT, PreFlight(None if has_work else Status.skip()))

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self._around.reach(Moment.PRE_BIND, pod.pod, node_name)
        await asyncio.sleep(seconds_in(pod.pod, PREPARE_ANNOTATION))
        return self._answer(Point.PRE_BIND, None)

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        return self._answer(Point.POST_BIND, None)

    def _answer(self, point: Point, answer: A) -> A:
        """The answer, unless a fault happens."""
        faults = self._around.faults
        if faults.happens(Fault.PLUGIN_RAISES, point):
            raise _RAISED[int(faults.rng.integers(len(_RAISED)))]("unsteady")
        if faults.happens(Fault.PLUGIN_JUNK, point):
            junk: Any = _JUNK[int(faults.rng.integers(len(_JUNK)))]
            return junk
        return answer


def seconds_in(pod: Pod, annotation: str) -> float:
    return float(pod.metadata.annotations.get(annotation, 0))
