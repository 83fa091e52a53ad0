"""What pods request of GPUs, and what nodes have: the annotations, label and resource of openb.

Pod    metadata.annotations   alibabacloud.com/gpu-milli       thousandths of each GPU
                              alibabacloud.com/gpu-count       how many GPUs, 1 if absent
                              alibabacloud.com/gpu-card-model  allowed models joined by "|"
                              alibabacloud.com/gpu-index       written by GpuShare, as "0-1"
Node   status.allocatable     alibabacloud.com/gpu-count
       metadata.labels        alibabacloud.com/gpu-card-model
"""

from functools import lru_cache
from typing import Final, NamedTuple

from kubestow.plugin import Pod, PodInfo

GPU_MILLI: Final = "alibabacloud.com/gpu-milli"
GPU_COUNT: Final = "alibabacloud.com/gpu-count"
GPU_MODEL: Final = "alibabacloud.com/gpu-card-model"
GPU_INDEX: Final = "alibabacloud.com/gpu-index"

# Of one GPU.
WHOLE: Final = 1000
# The width of all arrays of GPUs. Of a node with more, the others stay unused.
GPUS_MAX: Final = 8


class GpuRequest(NamedTuple):
    """`count` GPUs, `milli` thousandths of each; several GPUs are always whole ones."""

    count: int = 0
    milli: int = 0
    models: frozenset[str] = frozenset()  # empty: any

    @property
    def is_share(self) -> bool:
        return 0 < self.milli < WHOLE

    @property
    def total_milli(self) -> int:
        return self.count * self.milli


NO_GPU: Final = GpuRequest()


def gpu_request(pod: Pod) -> GpuRequest:
    """What the annotations request; no GPU if they are wrong (`request_fault` says how)."""
    annotations = pod.metadata.annotations
    milli = annotations.get(GPU_MILLI)
    if milli is None:
        return NO_GPU
    return _parsed(milli, annotations.get(GPU_COUNT, "1"), annotations.get(GPU_MODEL, ""))[0]


def request_fault(pod: Pod) -> str:
    """What is wrong with the annotations; empty if nothing is."""
    annotations = pod.metadata.annotations
    milli = annotations.get(GPU_MILLI)
    if milli is None:
        return ""
    return _parsed(milli, annotations.get(GPU_COUNT, "1"), annotations.get(GPU_MODEL, ""))[1]


@lru_cache(maxsize=4096)
def _parsed(milli: str, count: str, models: str) -> tuple[GpuRequest, str]:
    if not (milli.isdecimal() and count.isdecimal()):
        return NO_GPU, f'annotations {GPU_MILLI} "{milli}" and {GPU_COUNT} "{count}" are no numbers'
    each, number = int(milli), int(count)
    if each == 0 or number == 0:
        return NO_GPU, ""
    if each > WHOLE or (each < WHOLE and number > 1):
        return NO_GPU, (
            f"{number} GPUs with {each} thousandths of each cannot be requested: "
            f"either several GPUs with {WHOLE}, or one with at most {WHOLE}"
        )
    return GpuRequest(number, each, frozenset(models.split("|")) - {""}), ""


def gpu_indices(pod: Pod) -> tuple[int, ...]:
    """The GPUs that the annotation of a placed pod names; none if there is none."""
    text = pod.metadata.annotations.get(GPU_INDEX, "")
    indices = [int(part) for part in text.split("-") if part.isdecimal()]
    return tuple(index for index in indices if index < GPUS_MAX)


def index_text(indices: tuple[int, ...]) -> str:
    return "-".join(map(str, indices))


def cpu_milli(pod: PodInfo) -> int:
    """The pod's CPU request; a pod without one counts as upstream counts it."""
    return pod.accounted.non_zero_cpu
