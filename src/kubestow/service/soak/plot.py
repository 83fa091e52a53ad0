"""A soak as a picture, drawn by Matplotlib, which is an optional extra."""

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from kubestow.errors import InputError
from kubestow.service.soak.report import Sample, SoakReport

FORMATS: Final = (".svg", ".png")
_LIBRARY: Final = "matplotlib.figure"

# Title and unit of each part, and its lines.
_PARTS: Final[Sequence[tuple[str, Sequence[tuple[str, Callable[[Sample], float]]]]]] = (
    ("memory, MiB", (("resident", lambda sample: sample.rss_mib),)),
    (
        "queue, pods",
        (
            ("to be tried", lambda sample: sample.queued),
            ("waiting for an event", lambda sample: sample.parked),
        ),
    ),
    (
        "creation to binding, ms",
        (
            ("p50", lambda sample: sample.latency.p50_ms),
            ("p99", lambda sample: sample.latency.p99_ms),
            ("max", lambda sample: sample.latency.max_ms),
        ),
    ),
    (
        "stalls of the event loops, ms",
        (
            ("scheduler p99", lambda sample: sample.stalls.p99_ms),
            ("scheduler max", lambda sample: sample.stalls.max_ms),
            ("control max", lambda sample: sample.control_stalls.max_ms),
        ),
    ),
    ("lateness of the lease, ms", (("max", lambda sample: sample.lease_lateness.max_ms),)),
)


def require_plotting(path: Path) -> None:
    """InputError if a picture cannot be drawn, or not into this file."""
    if path.suffix not in FORMATS:
        raise InputError(f'--plot: "{path}" ends neither in .svg nor in .png')
    try:
        importlib.import_module(_LIBRARY)
    except ImportError as error:
        raise InputError(
            "--plot: needs Matplotlib, which is not installed; pip install 'kubestow[charts]'"
        ) from error
    try:
        path.open("ab").close()
    except OSError as error:
        raise InputError(f'--plot: cannot write "{path}": {error.strerror}') from error


def write_plot(report: SoakReport, path: Path) -> None:
    """Draw all measurements of the report over time."""
    # Any: Matplotlib need not be installed where types are checked.
    figure: Any = importlib.import_module(_LIBRARY).Figure(figsize=(9, 12), layout="constrained")
    minutes = [sample.second / 60 for sample in report.samples]
    parts: Any = figure.subplots(len(_PARTS), sharex=True)
    for axes, (title, lines) in zip(parts, _PARTS, strict=True):
        axes.set_title(title, loc="left", fontsize="medium")
        for label, value in lines:
            axes.plot(minutes, [value(sample) for sample in report.samples], label=label, lw=1)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        if len(lines) > 1:
            axes.legend(loc="upper right", fontsize="small")
    parts[-1].set_xlabel(f"minutes; {report.created} pods on {report.nodes} nodes")
    figure.savefig(path, format=path.suffix.removeprefix("."))
