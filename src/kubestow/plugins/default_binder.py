"""Binds a pod to a node at the API server (spec 05 §12)."""

from typing import ClassVar

from kubestow.api.pod_info import PodInfo
from kubestow.errors import ApiError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.handle import Handle
from kubestow.framework.status import Status


class DefaultBinder:
    name: ClassVar[str] = "DefaultBinder"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        self._client = handle.client

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        try:
            await self._client.bind(pod.pod, node_name)
        except ApiError as error:
            return Status.from_error(error)
        return None
