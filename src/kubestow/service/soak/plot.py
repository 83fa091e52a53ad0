"""A soak as a picture; the library that draws it is in the optional extra `reports`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from kubestow.errors import InputError
from kubestow.files.keeping import require_new
from kubestow.service.soak.report import Sample, SoakReport
from kubestow.simulator.reports.extra import require_extra

FORMATS: Final = (".svg", ".png")
_POINTS_MAX: Final = 2_000  # of a line; of more samples the largest value of several is drawn

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


def require_plotting(path: Path, *, force: bool = False) -> None:
    """InputError if a picture cannot be drawn, or not into this file."""
    if path.suffix not in FORMATS:
        raise InputError(f'--plot: "{path}" ends neither in .svg nor in .png')
    require_extra("--plot", "altair", "vl_convert")
    require_new(path, "--plot", force=force)


def write_plot(report: SoakReport, path: Path) -> None:
    """Draw all measurements of the report over time."""
    # Imported where it is used: it may be missing.
    from kubestow.simulator.reports.charts import Drawing, draw, lines_chart, picture
    from kubestow.simulator.reports.series import TimeUnit, line_key

    minutes = TimeUnit("minutes", 60.0)
    length = max(-(-len(report.samples) // _POINTS_MAX), 1)
    stretches = [
        report.samples[start : start + length] for start in range(0, len(report.samples), length)
    ]
    drawings: list[Drawing] = []
    for number, (title, lines) in enumerate(_PARTS):
        points = [
            {
                "time": stretch[0].second / minutes.seconds,
                "key": line_key(index),
                "line": name,
                "value": max(map(value, stretch)),
            }
            for stretch in stretches
            for index, (name, value) in enumerate(lines)
        ]
        chart = lines_chart(
            points,
            [name for name, _ in lines],
            name=f"part{number}",
            unit=minutes,
            y_title=title.rpartition(", ")[2],
            y_format="~g",
            is_interactive=False,
        )
        drawings.append(Drawing(f"part{number}", title, "", chart))
    draw(picture(drawings, "Soak", f"{report.created} pods on {report.nodes} nodes"), path)
