"""The procedure of the paper as plain loops over one node at a time; what the arrays must equal."""

import math
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

WHOLE = 1000


@dataclass(frozen=True)
class SlowPod:
    cpu: int
    memory: int = 0
    count: int = 0
    milli: int = 0
    models: frozenset[str] = frozenset()

    @property
    def gpu(self) -> int:
        return self.count * self.milli

    @property
    def class_name(self) -> str:
        return "share" if self.milli < WHOLE else f"{self.count} whole"


@dataclass
class SlowNode:
    name: str
    cpu: int
    memory: int
    gpus: list[int]  # left of each
    model: str
    classes: set[str] = field(default_factory=set)

    def allows(self, pod: SlowPod) -> bool:
        return not pod.models or self.model in pod.models

    def has_gpus(self, pod: SlowPod) -> bool:
        return sum(left >= pod.milli for left in self.gpus) >= pod.count

    def fits(self, pod: SlowPod) -> bool:
        fits_gpus = pod.count == 0 or (self.allows(pod) and self.has_gpus(pod))
        return self.cpu >= pod.cpu and self.memory >= pod.memory and fits_gpus

    def place(self, pod: SlowPod, gpus: tuple[int, ...]) -> None:
        self.cpu -= pod.cpu
        self.memory -= pod.memory
        for gpu in gpus:
            assert self.gpus[gpu] >= pod.milli
            self.gpus[gpu] -= pod.milli
        if pod.count:
            self.classes.add(pod.class_name)


Typical = list[tuple[SlowPod, int]]


def typical_of(pods: list[SlowPod]) -> Typical:
    """The most frequent shapes that cover 95 %; memory is not part of a shape."""
    shapes = Counter(SlowPod(pod.cpu, 0, pod.count, pod.milli, pod.models) for pod in pods)
    ordered = sorted(
        shapes.items(),
        key=lambda item: (
            item[1],
            item[0].cpu,
            item[0].milli,
            item[0].count,
            sorted(item[0].models),
        ),
        reverse=True,
    )
    chosen: Typical = []
    covered = 0
    for shape, count in ordered:
        if covered >= 0.95 * len(pods):
            break
        chosen.append((shape, count))
        covered += count
    return chosen


def fragmentation(cpu: int, gpus: list[int], model: str, typical: Typical) -> Fraction:
    total = sum(count for _, count in typical)
    found = Fraction(0)
    for shape, count in typical:
        node = SlowNode("", cpu, 0, gpus, model)
        if shape.count and node.fits(shape):
            unusable = sum(left for left in gpus if left < shape.milli)
        else:
            unusable = sum(gpus)
        found += Fraction(count, total) * unusable
    return found


def fgd_scores(node: SlowNode, pod: SlowPod, typical: Typical) -> list[int | None]:
    """Of each GPU for a share (None: does not fit), otherwise one score."""
    before = fragmentation(node.cpu, node.gpus, node.model, typical)

    def score(gpus: list[int]) -> int:
        after = fragmentation(node.cpu - pod.cpu, gpus, node.model, typical)
        return int(100 / (1 + math.exp(-float(before - after) / 1000)))

    if 0 < pod.milli < WHOLE:
        return [
            score([*node.gpus[:gpu], left - pod.milli, *node.gpus[gpu + 1 :]])
            if left >= pod.milli
            else None
            for gpu, left in enumerate(node.gpus)
        ]
    left = list(node.gpus)
    for gpu in tightest(node, pod):
        left[gpu] -= pod.milli
    return [score(left)]


def tightest(node: SlowNode, pod: SlowPod) -> tuple[int, ...]:
    fitting = [gpu for gpu, left in enumerate(node.gpus) if left >= pod.milli]
    if pod.milli < WHOLE:
        fitting.sort(key=lambda gpu: node.gpus[gpu])
    return tuple(fitting[: pod.count])


def raw_score(policy: str, node: SlowNode, pod: SlowPod, typical: Typical) -> int:
    free_gpu = sum(node.gpus)
    idle = sum(left == WHOLE for left in node.gpus)
    match policy:
        case "DotProd":
            product = node.cpu / 128_000 * (pod.cpu / 128_000)
            product += free_gpu / 8_000 * (pod.gpu / 8_000)
            return int(100 * (1 - product / 2))
        case "BestFit":
            left = (node.cpu - pod.cpu) / 128_000 * 0.5 + (free_gpu - pod.gpu) / 8_000 * 0.5
            return int((1 - left) * 100)
        case "GpuPacking":
            if pod.count == 0:
                return 0
            if idle == len(node.gpus):
                return 33 - idle
            taken = [node.gpus[gpu] for gpu in sorted(_smallest_first(node, pod)[: pod.count])]
            idle_taken = sum(left == WHOLE for left in taken)
            if idle_taken:
                return 50 - idle_taken
            return 100 - sum(left * 100 // WHOLE for left in taken) // 10
        case "GpuClustering":
            if pod.count == 0:
                return 0
            if pod.class_name in node.classes:
                base = 75 if len(node.classes) == 1 else 50
            else:
                base = 0 if node.classes else 25
            return base + 25 * (8_000 - free_gpu) // 8_000
        case "FGD":
            return max(score for score in fgd_scores(node, pod, typical) if score is not None)
        case _:
            raise ValueError(policy)


def _smallest_first(node: SlowNode, pod: SlowPod) -> list[int]:
    fitting = [gpu for gpu, left in enumerate(node.gpus) if left >= pod.milli]
    return sorted(fitting, key=lambda gpu: node.gpus[gpu])


def scores(policy: str, nodes: list[SlowNode], pod: SlowPod, typical: Typical) -> list[int]:
    raw = [raw_score(policy, node, pod, typical) for node in nodes]
    if policy == "BestFit":
        low, high = min(raw), max(raw)
        return [0 if high == low else (score - low) * 100 // (high - low) for score in raw]
    return raw


def choose(
    policy: str, nodes: list[SlowNode], pod: SlowPod, typical: Typical
) -> tuple[SlowNode, tuple[int, ...]] | None:
    """The node and its GPUs; of equals the smallest name."""
    fitting = sorted((node for node in nodes if node.fits(pod)), key=lambda node: node.name)
    if not fitting:
        return None
    found = scores(policy, fitting, pod, typical)
    node = fitting[found.index(max(found))]
    if policy == "FGD" and 0 < pod.milli < WHOLE:
        by_gpu = fgd_scores(node, pod, typical)
        best = max(score for score in by_gpu if score is not None)
        return node, (by_gpu.index(best),)
    return node, tightest(node, pod)
