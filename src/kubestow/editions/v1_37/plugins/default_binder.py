"""DefaultBinder of v1.37: a binding is tried up to four times (spec 12 §5.2)."""

import asyncio
from typing import Final

from kubestow.api.pod_info import PodInfo
from kubestow.errors import ApiError, UnreachableError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.handle import Handle
from kubestow.framework.status import Status
from kubestow.plugins.default_binder import DefaultBinder

# Between two tries; each is up to a tenth longer.
RETRY_PAUSES_S: Final = (0.01, 0.05, 0.25)
_JITTER: Final = 0.1
# InternalError and ServiceUnavailable.
_RETRIED_CODES: Final = frozenset((500, 503))


class DefaultBinderV137(DefaultBinder):
    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._handle = handle

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        is_unclear = False
        for pause_s in (*RETRY_PAUSES_S, None):
            try:
                await self._client.bind(pod.pod, node_name)
            except ApiError as error:
                # A conflict may come of an earlier try that was carried out.
                is_unclear |= error.is_unclear
                if pause_s is None or not _is_retried(error):
                    return await self._failed(pod, node_name, error, is_unclear=is_unclear)
                await self._wait(pause_s)
            else:
                return None
        raise AssertionError("unreachable")

    async def _wait(self, pause_s: float) -> None:
        rng, may_bind = self._handle.rng, self._handle.may_bind
        jitter = 0.0 if rng is None else float(rng.random()) * _JITTER
        await asyncio.sleep(pause_s * (1 + jitter))
        if may_bind is not None:
            # The process may have been stopped since, and another one may lead.
            await may_bind()


def _is_retried(error: ApiError) -> bool:
    if isinstance(error, UnreachableError):
        return error.cause == "refused"
    return error.code in _RETRIED_CODES
