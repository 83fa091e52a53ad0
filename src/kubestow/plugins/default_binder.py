"""Binds a pod to a node at the API server (spec 05 §12).

Beyond upstream: where the answer to a binding was lost, the pod is read before the binding counts
as failed. Upstream gives up the assumed pod at once and may then place another one in its room.
"""

import asyncio
import logging
from typing import ClassVar, Final

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.errors import ApiError, NotFoundError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.handle import Handle
from kubestow.framework.status import Status
from kubestow.logs import ObjectName, inform

log = logging.getLogger(__name__)

# Pauses between attempts to read the pod while the server does not answer.
READ_PAUSES_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)


class DefaultBinder:
    name: ClassVar[str] = "DefaultBinder"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        self._client = handle.client

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        try:
            await self._client.bind(pod.pod, node_name)
        except ApiError as error:
            return await self._failed(pod, node_name, error, is_unclear=error.is_unclear)
        return None

    async def _failed(
        self, pod: PodInfo, node_name: str, error: ApiError, *, is_unclear: bool
    ) -> Status | None:
        """The status after an error; None if the pod is bound nevertheless."""
        if is_unclear and await self._is_bound(pod.pod, node_name):
            name = ObjectName(pod.namespace, pod.name)
            inform(log, "Bound in spite of an error", pod=name, node=node_name, err=error)
            return None
        return Status.from_error(error)

    async def _is_bound(self, pod: Pod, node_name: str) -> bool:
        """Whether the server has the pod on the node; False also if it never answers."""
        metadata = pod.metadata
        for pause_s in (*READ_PAUSES_S, None):
            try:
                found = await self._client.get(Pod, metadata.namespace, metadata.name)
            except NotFoundError:
                return False
            except ApiError:
                if pause_s is None:
                    return False
                await asyncio.sleep(pause_s)
            else:
                return found.metadata.uid == metadata.uid and found.spec.node_name == node_name
        raise AssertionError("unreachable")
