"""Files of what the pods of a trace used, by the format of the trace."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

from kubestow.clock import NANOSECONDS
from kubestow.errors import InputError
from kubestow.simulator.traces.alibaba import alibaba_use
from kubestow.simulator.traces.azure import azure_use
from kubestow.simulator.usage.series import UsageSeries, UsePoint
from kubestow.usage.file_format import BadLine, read_usage
from kubestow.usage.measurement import Measurement

UseFormat = Literal["measurements", "alibaba2018", "azure2019"]
# Seconds since 1970 rather than from the start of a run.
_DATES_S: Final = 10**9


def series_of(path: Path, format: UseFormat, *, start_s: float) -> UsageSeries:
    """The use that a file has; InputError names file, line and what is wrong.

    start_s   the start of the run in seconds since 1970: from it on count measurements with a date
    """
    try:
        if format == "alibaba2018":
            return UsageSeries(alibaba_use(path), are_shares=True)
        if format == "azure2019":
            return UsageSeries(azure_use(path), are_shares=True)
        found = measured_series(read_usage(path), start_s=start_s)
    except InputError as error:
        text = str(error)
        raise InputError(text if str(path) in text else f"{path}: {text}") from error
    if not len(found):
        raise InputError(f"{path}: has no measurements of pods")
    return found


def measured_series(
    measurements: Iterable[Measurement | BadLine], *, start_s: float
) -> UsageSeries:
    """The use of pods that were measured; lines that are bad are left out."""
    return UsageSeries(_points(measurements, start_s), are_shares=False)


def _points(measurements: Iterable[Measurement | BadLine], start_s: float) -> Iterator[UsePoint]:
    for measurement in measurements:
        if isinstance(measurement, BadLine) or not measurement.pod:
            continue
        # A measurement is of the window before its time.
        time_s = (measurement.time_ns - measurement.window_ns) / NANOSECONDS
        if time_s > _DATES_S:
            time_s -= start_s
        key = f"{measurement.namespace}/{measurement.pod}"
        yield UsePoint(key, time_s, *map(float, measurement.average))
