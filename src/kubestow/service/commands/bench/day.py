"""`kubestow bench day`: how long a virtual day takes, and what takes the time.

The shares are of samples of the stack: the outermost part of the program that a sample is in. What
a write to the store calls, such as kubelets, counts as itself, not as the part that has written.
"""

import signal
import sys
from collections import Counter
from types import FrameType
from typing import Final

import msgspec

from kubestow.clock import SystemClock, process_cpu_s
from kubestow.service.formats import TimesFormat
from kubestow.service.output import duration_text, run_bar, run_fields
from kubestow.service.soak.gauges import rss_mib
from kubestow.simulator.bench.day import run_day
from kubestow.simulator.bench.measure import peak_memory_mib
from kubestow.simulator.scenario.scenario import Progress
from kubestow.table import Table

# Of each stack, from its outermost call inwards, the first that is named here decides; of what a
# write calls, the first after that.
_CALLED_BY_WRITES: Final = "kubestow.apiserver.subscribers."
PARTS: Final = (
    ("kubestow.engine.scheduler.", "decisions"),
    ("kubestow.engine.bind.", "bindings"),
    ("kubestow.engine.", "decisions"),
    ("kubestow.cluster.informer.", "scheduler's view of the cluster"),
    ("kubestow.simulator.kubelets.", "kubelets: pods start and end"),
    ("kubestow.simulator.scenario.plan.", "arrivals"),
    ("kubestow.simulator.scenario.collector.", "rows of the result"),
    ("kubestow.simulator.scenario.samples.", "samples"),
    ("kubestow.queue.timers.", "timers of the queue"),
    ("kubestow.simulator.controllers.", "controllers"),
    ("kubestow.apiserver.controllers.", "controllers"),
    ("kubestow.simulator.cluster_file.", "setting up"),
)
_OTHER: Final = "event loop and others"
_SAMPLE_S: Final = 0.005


class DayTimes(msgspec.Struct, frozen=True, kw_only=True):
    nodes: int
    pods: int
    ended: int
    wall_s: float
    cpu_s: float
    pods_per_s: float
    # Of the process in the middle of the day, and the most it ever had.
    resident_mib_half: float
    peak_memory_mib: float
    # Of the time, largest first.
    parts: dict[str, float]


def run_day_bench(*, nodes: int, pods: int, output: TimesFormat) -> None:
    """Play the day and print what it took."""
    times = _measure(nodes, pods)
    if output is TimesFormat.JSON:
        sys.stdout.write(msgspec.json.encode(times).decode() + "\n")
        return
    columns = ("NODES", "PODS", "ENDED", "TIME", "CPU", "PODS/S", "MIB HALFWAY", "MIB AT MOST")
    table = Table(*columns, right=columns)
    table.add(
        str(times.nodes),
        str(times.pods),
        str(times.ended),
        duration_text(times.wall_s),
        duration_text(times.cpu_s),
        f"{times.pods_per_s:.0f}",
        f"{times.resident_mib_half:.0f}",
        f"{times.peak_memory_mib:.0f}",
    )
    table.print()
    sys.stdout.write("\n")
    parts = Table("SHARE", "PART", right=("SHARE",))
    for part, share in times.parts.items():
        parts.add(f"{share:.1%}", part)
    parts.print()


def _measure(nodes: int, pods: int) -> DayTimes:
    clock = SystemClock()
    started_s, started_cpu_s = clock.monotonic_s(), process_cpu_s()
    halfway: list[float] = []
    with run_bar() as progress, _CpuShares() as sampled:
        task = progress.add_task("Playing", total=1.0, rate="")

        def note(each: Progress) -> None:
            fields = run_fields(
                time_s=each.time_s,
                until_s=each.until_s,
                placed=each.placed,
                elapsed_s=clock.monotonic_s() - started_s,
            )
            progress.update(task, **fields)
            if not halfway and each.time_s * 2 >= each.until_s:
                halfway.append(round(rss_mib(), 1))

        result = run_day(nodes=nodes, pods=pods, on_progress=note)
    wall_s = clock.monotonic_s() - started_s
    return DayTimes(
        nodes=nodes,
        pods=len(result.pods),
        ended=result.samples[-1].ended,
        wall_s=round(wall_s, 1),
        cpu_s=round(process_cpu_s() - started_cpu_s, 1),
        pods_per_s=round(len(result.pods) / wall_s, 1),
        resident_mib_half=halfway[0],
        # The kernel updates its maximum later than the current value.
        peak_memory_mib=max(peak_memory_mib(), halfway[0]),
        parts=sampled.shares(),
    )


class _CpuShares:
    """Samples the stack of the main thread each few milliseconds of CPU time.

    By a signal: a thread would see the main thread mostly where it lets other threads run.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def __enter__(self) -> "_CpuShares":
        self._before = signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, _SAMPLE_S, _SAMPLE_S)
        return self

    def __exit__(self, *error: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, self._before)

    def shares(self) -> dict[str, float]:
        total = max(self._counts.total(), 1)
        return {part: round(count / total, 3) for part, count in self._counts.most_common()}

    def _sample(self, number: int, frame: FrameType | None) -> None:
        self._counts[part_of(frame)] += 1


def part_of(frame: FrameType | None) -> str:
    """The outermost part that this stack is in, or that the last write in it has called."""
    part = ""
    while frame is not None:
        name = f"{frame.f_globals.get('__name__', '')}.{frame.f_code.co_qualname}"
        if part and name.startswith(_CALLED_BY_WRITES):
            break
        part = next((part for prefix, part in PARTS if name.startswith(prefix)), part)
        frame = frame.f_back
    return part or _OTHER
