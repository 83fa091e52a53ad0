"""Places a workload with the v1.9 scheduler, in virtual time.

The cluster is that of every simulation: an API server in memory, kubelets and volume controllers.
v1.9 retries without bound, so a run ends when another attempt could only repeat the last.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.api.pod import is_terminal
from kubestow.apiserver.memory import MemoryCluster
from kubestow.editions.v1_9.engine.algorithm import Algorithm
from kubestow.editions.v1_9.engine.decide import DecisionV19
from kubestow.editions.v1_9.simulator.embedded import EmbeddedV19
from kubestow.simulator.defaults import LIMIT_S
from kubestow.simulator.kubelets import FakeKubelets
from kubestow.simulator.loading import (
    AfterFirstDecision,
    count_pods,
    load_cluster,
    make,
    pods_of,
    settle_new,
)
from kubestow.simulator.pod_owner import owner_in_files
from kubestow.simulator.simulation import (
    SimulationResult,
    node_outcomes,
    pod_outcome,
    rounded_s,
)
from kubestow.simulator.virtual_time import VirtualClock
from kubestow.simulator.volume_controller import VolumeController


class SimulationV19:
    """One run. Create it inside a virtual-time loop, then await `run`."""

    def __init__(
        self,
        documents: Sequence[Document | JsonObject],
        algorithm: Algorithm,
        *,
        scheduler_name: str = "default-scheduler",
        use_equivalence_cache: bool = False,
        on_decision: Callable[[DecisionV19], None] | None = None,
        seed: int = 0,
    ) -> None:
        clock = self._clock = VirtualClock(asyncio.get_running_loop())
        self._started_ns = clock.now_ns()
        self._attempts: Counter[str] = Counter()
        self._placed_ns: dict[str, int] = {}
        self._on_decision = on_decision
        store = MemoryCluster(clock, seed=seed, lists_as_created=True)
        self._loaded = load_cluster(store, documents)
        self._to_make = self._loaded.to_make
        pods = [pod for pod in pods_of(store) if not is_terminal(pod)]
        self._waiting = [pod for pod in pods if not pod.spec.node_name]
        self._running = [pod for pod in pods if pod.spec.node_name]
        kubelets = FakeKubelets(store, clock, starts_pods=False)
        self._controllers = AfterFirstDecision([kubelets, VolumeController(store)], self._make_pods)
        self.cluster = EmbeddedV19(
            store,
            algorithm,
            clock,
            scheduler_name=scheduler_name,
            use_equivalence_cache=use_equivalence_cache,
            listeners=[self._record],
            controllers=[self._controllers],
            seed=seed,
        )

    @property
    def waiting_count(self) -> int:
        """The number of pods to place."""
        return len(self._waiting) + count_pods(self._to_make)

    async def run(self, *, limit_s: float = LIMIT_S) -> SimulationResult:
        """Run the scheduler until nothing is left to do, or to the limit of virtual time."""
        await settle_new(self.cluster.store, self._loaded)
        async with self.cluster.running():
            has_settled = await self.cluster.settle(limit_s=limit_s)
        return self._result(has_settled)

    def _record(self, decision: DecisionV19) -> None:
        uid = decision.pod.uid
        self._controllers.decided()
        self._attempts[uid] += 1
        if decision.is_scheduled:
            self._placed_ns.setdefault(uid, self._clock.now_ns())
        if self._on_decision is not None:
            self._on_decision(decision)

    def _make_pods(self) -> None:
        known = {pod.metadata.uid for pod in pods_of(self.cluster.store)}
        make(self.cluster.store, self._to_make)
        self._to_make = ()
        made = [pod for pod in pods_of(self.cluster.store) if pod.metadata.uid not in known]
        self._waiting += made

    def _result(self, has_settled: bool) -> SimulationResult:
        after = {pod.metadata.uid: pod for pod in pods_of(self.cluster.store)}
        outcomes = [
            pod_outcome(
                after.get(uid, pod),
                attempts=self._attempts[uid],
                after_ns=self._placed_ns.get(uid, self._started_ns) - self._started_ns,
                scheduler_names=self.cluster.scheduler_names,
                owner=owner_in_files(self.cluster.store, pod),
            )
            for pod in self._waiting
            if (uid := pod.metadata.uid)
        ]
        return SimulationResult(
            pods=outcomes,
            nodes=node_outcomes(self.cluster.refreshed()),
            running_count=sum(1 for pod in self._running if pod.metadata.uid in after),
            evicted=[],
            virtual_duration_s=rounded_s(self._clock.now_ns() - self._started_ns),
            has_settled=has_settled,
        )
