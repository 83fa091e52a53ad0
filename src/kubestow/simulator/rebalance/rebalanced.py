"""What carrying a plan out asks of an API server, and what it reads from its pods."""

from collections.abc import Collection, Container, Mapping, Sequence
from typing import Final, Protocol

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.api.owners import controller_of
from kubestow.api.pod import Pod, first_condition, is_terminal, is_terminating
from kubestow.simulator.rebalance.plan import EvictedPod, ScaledOwner

POLL_S: Final = 1.0
# Beyond what a step is expected to take.
PATIENCE_S: Final = 300.0


class SurpriseError(Exception):
    """The cluster is not as the plan expects it."""


class RebalancedServer(Protocol):
    """What is asked of the API server; all methods raise ApiError, `read` also InputError.

    A version is that of a read; empty for any. One that differs raises ConflictError.
    """

    async def read(self) -> Sequence[Document]:
        """The whole cluster, as it is now."""
        ...

    async def pods(self, namespace: str) -> Sequence[Pod]:
        """The pods of a namespace, of all if it is empty."""
        ...

    async def evict(self, pod: EvictedPod, version: str, *, is_dry: bool = False) -> None:
        """ConflictError if the pod has another UID as well.

        `is_dry`: only ask whether it would be evicted.
        """
        ...

    async def annotate(
        self, namespace: str, name: str, values: Mapping[str, str | None], version: str = ""
    ) -> None:
        """Set annotations of a pod; None removes one."""
        ...

    async def scale(
        self, namespace: str, owner: ScaledOwner, *, before: int, after: int, version: str = ""
    ) -> None:
        """ConflictError if the controller has another UID, or other replicas than `before`."""
        ...

    async def replica_set(self, namespace: str, name: str) -> JsonObject:
        """A ReplicaSet as its controller has left it; empty if there is none."""
        ...

    async def close_node(self, name: str, *, is_closed: bool) -> None: ...

    def note(self, pod: Pod, reason: str, text: str) -> None:
        """Record an event about a pod; never waits."""
        ...


def owner_uid(pod: Pod) -> str:
    reference = controller_of(pod)
    return "" if reference is None else reference.uid


def is_active(pod: Pod) -> bool:
    return not is_terminating(pod) and not is_terminal(pod)


def is_new(pod: Pod, owners: Collection[str], known: Container[str]) -> bool:
    return owner_uid(pod) in owners and pod.metadata.uid not in known and is_active(pod)


def is_ready(pod: Pod) -> bool:
    ready = first_condition(pod.status.conditions, "Ready")
    return ready is not None and ready.status == "True"
