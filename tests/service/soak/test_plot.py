"""The picture of a soak, and what is said where it cannot be drawn."""

import sys
from pathlib import Path

import msgspec
import pytest

from kubestow.errors import InputError
from kubestow.service.soak.plot import require_plotting, write_plot
from kubestow.service.soak.report import Sample, SoakReport

SPREAD = {"count": 1, "p50_ms": 1.0, "p99_ms": 2.0, "max_ms": 3.0}
SPREADS = {name: SPREAD for name in ("latency", "stalls", "control_stalls", "lease_lateness")}


def report() -> SoakReport:
    samples = [
        msgspec.convert(
            dict(second=second, created=9, bound=9, rss_mib=99.0, queued=1, parked=2, **SPREADS),
            Sample,
        )
        for second in (0.0, 60.0)
    ]
    return SoakReport(
        seconds=60.0,
        over_http=False,
        nodes=3,
        pods_per_s=1.0,
        created=9,
        bound=9,
        evicted=0,
        growth_mib_per_1000_pods=0.0,
        filling=[],
        growing=[],
        latency=samples[0].latency,
        stalls=samples[0].stalls,
        control_stalls=samples[0].control_stalls,
        lease_lateness=samples[0].lease_lateness,
        queue_depth_max=1,
        samples=samples,
        kept=[],
    )


def test_without_the_library_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(InputError, match=r"--plot: needs Vega-Altair.*kubestow\[reports\]"):
        require_plotting(tmp_path / "soak.svg")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("soak.pdf", "ends neither in .svg nor in .png", id="another-format"),
        pytest.param("none/soak.svg", "cannot write .*there is no folder", id="no-such-folder"),
    ],
)
def test_files_that_cannot_be_written_are_refused(name: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"--plot: .*{text}"):
        require_plotting(tmp_path / name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "start"),
    [pytest.param("soak.svg", b"<svg", id="svg"), pytest.param("soak.png", b"\x89PNG", id="png")],
)
def test_pictures_are_drawn(name: str, start: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    require_plotting(path)
    write_plot(report(), path)
    assert path.read_bytes().startswith(start)
    if path.suffix == ".svg":
        text = path.read_text(encoding="utf-8")
        for title in ("memory, MiB", "queue, pods", "lateness of the lease, ms", "9 pods on 3"):
            assert title in text
