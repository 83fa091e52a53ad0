"""Upper bounds of histogram buckets (spec 09 §8), exact to the last bit for dashboards."""

from typing import Final


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Each bound is the one before times the factor: powers would have other last digits."""
    bounds: list[float] = []
    for _ in range(count):
        bounds.append(start)
        start *= factor
    return tuple(bounds)


A: Final = exponential(0.0001, 2, 12)
B: Final = exponential(0.001, 2, 15)
C: Final = exponential(1, 2, 7)
D: Final = exponential(0.01, 2, 20)
E: Final = exponential(1, 2, 5)
F: Final = exponential(0.00001, 1.5, 20)
G: Final = exponential(0.1, 2, 14)
H: Final = exponential(0.00001, 2, 12)

REQUEST_SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
REQUEST_BYTES: Final = (
    *(64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0),
    *(1048576.0, 4194304.0, 16777216.0),
)
WORK_SECONDS: Final = exponential(1e-08, 10, 12)
