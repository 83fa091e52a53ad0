"""Which of two pods is more important, when some must be evicted (spec 01 §13.5).

Higher priority first, then the pod that has run longer. A pod that has not started counts as
started now; the caller reads the clock once for a whole list, so that all comparisons agree.
Between two pods that have not started upstream reads the clock for each, so that either is more
important than the other: its sort reverses them (`PodInfo.reverses_unstarted`).
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def start_time_ns(pod: Pod, now_ns: int) -> int:
    """When the pod started, in nanoseconds since 1970; now if it has not."""
    start = pod.status.start_time
    if start is None:
        return now_ns
    # Integers throughout: a float of nanoseconds since 1970 is off by a hundred of them.
    return (start - _EPOCH) // _MICROSECOND * 1_000


def importance_key(pod_info: PodInfo, now_ns: int) -> tuple[int, int]:
    """A sort key that puts more important pods first."""
    return -pod_info.priority, start_time_ns(pod_info.pod, now_ns)


def by_importance(pod_infos: Iterable[PodInfo], now_ns: int) -> list[PodInfo]:
    """The pods, most important first; equals stay in the order given, if both have started."""
    pods = list(pod_infos)
    unstarted = [pod for pod in pods if pod.pod.status.start_time is None]
    if len(unstarted) > 1 and unstarted[0].reverses_unstarted:
        started = [pod for pod in pods if pod.pod.status.start_time is not None]
        pods = [*started, *reversed(unstarted)]
    return sorted(pods, key=lambda pod_info: importance_key(pod_info, now_ns))


def earliest_start_ns(victims: Iterable[PodInfo], now_ns: int) -> int:
    """The earliest start among the victims of the highest priority; at least one victim."""
    return min(importance_key(victim, now_ns) for victim in victims)[1]
