"""What one node or one pod used at a time, and whether that can be true."""

from typing import Final, NamedTuple

# More than any machine has: a measurement beyond it is an error of its source.
CPU_MILLI_MAX: Final = 10**8
MEMORY_BYTES_MAX: Final = 2**50
# The longest name that an object of Kubernetes has.
NAME_LENGTH_MAX: Final = 253
WINDOW_NS_MAX: Final = 24 * 3600 * 10**9


class Amounts(NamedTuple):
    """CPU in thousandths of a core and memory in bytes."""

    cpu_milli: int
    memory_bytes: int


class Measurement(NamedTuple):
    """What a node, or a pod, used over `window_ns` up to `time_ns`.

    node           the measured node; of a pod: its node, or "" where the source does not have it
    pod            the name of the measured pod; "" for the measurement of a node
    workload       of a pod: what its siblings have in common (`workload_of`); "" if it has none
    average        over the window
    p95, peak      within the window, where the source has them; else the average counts as both
    """

    time_ns: int
    average: Amounts
    node: str = ""
    namespace: str = ""
    pod: str = ""
    workload: str = ""
    window_ns: int = 0
    p95: Amounts | None = None
    peak: Amounts | None = None


def problem_of(measurement: Measurement) -> str | None:
    """Why a measurement cannot be used, in one or two words; None if it can."""
    if measurement.pod:
        if not measurement.namespace or len(measurement.pod) > NAME_LENGTH_MAX:
            return "bad name"
    elif not measurement.node:
        return "bad name"
    if len(measurement.node) > NAME_LENGTH_MAX or len(measurement.namespace) > NAME_LENGTH_MAX:
        return "bad name"
    if not 0 <= measurement.window_ns <= WINDOW_NS_MAX or measurement.time_ns < 0:
        return "bad time"
    for amounts in (measurement.average, measurement.p95, measurement.peak):
        if amounts is not None and (problem := _problem_of_amounts(amounts)) is not None:
            return problem
    return None


def _problem_of_amounts(amounts: Amounts) -> str | None:
    if amounts.cpu_milli < 0 or amounts.memory_bytes < 0:
        return "negative"
    if amounts.cpu_milli > CPU_MILLI_MAX or amounts.memory_bytes > MEMORY_BYTES_MAX:
        return "too large"
    return None
