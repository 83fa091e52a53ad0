"""Files of measurements: JSON lines, or CSV with the same names as columns; packed or not.

    {"time":"2026-01-31T12:00:00Z","node":"n1","cpu":"1500m","memory":"6Gi"}
    {"time":90,"namespace":"web","pod":"a-1","node":"n1","cpu":0.25,"memory":268435456}

    time               RFC 3339, or seconds: since 1970, or since the start of a run
    node               of a measurement of a node, and where it is known of one of a pod
    namespace, pod     of a measurement of a pod
    workload           of a pod, where it is known: namespace/kind/name
    cpu, memory        quantities, or numbers of cores and bytes: the average over the window
    window             seconds
    cpuP95, memoryP95, cpuPeak, memoryPeak    within the window, both of a kind or none

The first character distinguishes the two forms. `read_usage` raises an InputError that names file,
line and field; a source that must go on despite bad lines gets them from `read_lines`.
"""

import csv
import io
import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from kubestow.api.quantity import parse_quantity
from kubestow.errors import InputError
from kubestow.files.keeping import create
from kubestow.files.reading import DamagedError, read_file, unpacked
from kubestow.usage.measurement import Amounts, Measurement, problem_of

_NANOSECONDS: Final = 10**9
_TIME_S_MAX: Final = 10**11
_SHOWN: Final = 40


class UsageLine(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One line as it is written."""

    time: float | str
    node: str = ""
    namespace: str = ""
    pod: str = ""
    workload: str = ""
    cpu: float | str
    memory: float | str
    window: float | str = 0
    cpu_p95: float | str | None = msgspec.field(name="cpuP95", default=None)
    memory_p95: float | str | None = msgspec.field(name="memoryP95", default=None)
    cpu_peak: float | str | None = msgspec.field(name="cpuPeak", default=None)
    memory_peak: float | str | None = msgspec.field(name="memoryPeak", default=None)


class BadLine(NamedTuple):
    """A line that is no measurement, and why."""

    line: int
    problem: str


_DECODER: Final = msgspec.json.Decoder(UsageLine)
_ENCODER: Final = msgspec.json.Encoder()


def read_usage(path: Path) -> Iterator[Measurement]:
    """The measurements of a file, in its order; raises InputError at the first bad line."""
    try:
        content = unpacked(read_file(path), str(path))
    except OSError as error:
        raise InputError(f'cannot read "{path}": {error.strerror}') from error
    except DamagedError as error:
        raise InputError(f'cannot unpack "{path}": {error}') from error
    for found in read_lines(content):
        if isinstance(found, BadLine):
            raise InputError(f"{path}, line {found.line}: {found.problem}")
        yield found


def read_lines(content: bytes) -> Iterator[Measurement | BadLine]:
    """Each line of a file as a measurement, or why it is none."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    if not content.strip():
        return
    rows = _json_rows(content) if content.lstrip().startswith(b"{") else _csv_rows(content)
    for line, row in rows:
        if isinstance(row, str):
            yield BadLine(line, row)
            continue
        try:
            measurement = _measurement(row)
        except ValueError as error:
            yield BadLine(line, str(error))
            continue
        problem = problem_of(measurement)
        yield measurement if problem is None else BadLine(line, _explained(problem))


class UsageWriter:
    """Writes measurements as JSON lines to a new file; OSError as `files.keeping.create`."""

    def __init__(self, path: Path, *, force: bool = False) -> None:
        self._file: BinaryIO = create(path, force=force)

    def write(self, measurements: Iterable[Measurement]) -> None:
        self._file.write(usage_bytes(measurements))

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def usage_bytes(measurements: Iterable[Measurement]) -> bytes:
    """The content of a file of these measurements."""
    return b"".join(_ENCODER.encode(_line(measurement)) + b"\n" for measurement in measurements)


# --- reading ---

_Row = UsageLine | str


def _json_rows(content: bytes) -> Iterator[tuple[int, _Row]]:
    for line, text in enumerate(io.BytesIO(content), 1):
        if not text.strip():
            continue
        try:
            yield line, _DECODER.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            yield line, f"not a measurement: {error}"


def _csv_rows(content: bytes) -> Iterator[tuple[int, _Row]]:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        yield 1, f"not text in UTF-8: {error.reason}"
        return
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        first: list[str] = next(reader, [""])
        header = [cell.strip() for cell in first]
        if (problem := _header_problem(header)) is not None:
            yield 1, problem
            return
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                text = f"has {len(cells)} columns, expected {len(header)} as in line 1"
                yield reader.line_num, text
                continue
            # An empty cell is a field that the line does not have.
            fields = {
                name: cell.strip() for name, cell in zip(header, cells, strict=True) if cell.strip()
            }
            try:
                yield reader.line_num, msgspec.convert(fields, UsageLine)
            except msgspec.ValidationError as error:
                yield reader.line_num, f"not a measurement: {error}"
    except csv.Error as error:
        yield reader.line_num, f"not CSV: {error}"


def _header_problem(header: list[str]) -> str | None:
    known = [field.encode_name for field in msgspec.structs.fields(UsageLine)]
    for name in header:
        if name not in known:
            return f'unknown column "{_cut(name)}", expected {", ".join(known)}'
        if header.count(name) > 1:
            return f'the column "{name}" is given twice'
    for name in ("time", "cpu", "memory"):
        if name not in header:
            return f'the column "{name}" is missing'
    return None


def _measurement(row: UsageLine) -> Measurement:
    """Raises ValueError with the field that is wrong."""
    average = _amounts(row.cpu, row.memory, "")
    assert average is not None, row
    return Measurement(
        time_ns=_time_ns(row.time),
        average=average,
        node=row.node,
        namespace=row.namespace,
        pod=row.pod,
        workload=row.workload,
        window_ns=_seconds_ns("window", row.window),
        p95=_amounts(row.cpu_p95, row.memory_p95, "P95"),
        peak=_amounts(row.cpu_peak, row.memory_peak, "Peak"),
    )


def _amounts(cpu: float | str | None, memory: float | str | None, suffix: str) -> Amounts | None:
    if cpu is None and memory is None:
        return None
    if cpu is None or memory is None:
        raise ValueError(f"expected both cpu{suffix} and memory{suffix}, or none of them")
    return Amounts(_amount(f"cpu{suffix}", cpu, 1000), _amount(f"memory{suffix}", memory, 1))


def _amount(field: str, value: float | str, factor: int) -> int:
    if isinstance(value, str):
        try:
            # Not by its 64-bit value, which wraps around: a huge amount has to be recognised.
            return -(-parse_quantity(value).nano * factor // _NANOSECONDS)
        except ValueError as error:
            raise ValueError(f'{field} is "{_cut(value)}": {error}') from error
    if not math.isfinite(value * factor):
        raise ValueError(f"{field} is {value}, expected a number of at least 0")
    return round(value * factor)


def _time_ns(value: float | str) -> int:
    if isinstance(value, str) and "T" in value:
        try:
            time = datetime.fromisoformat(value)
        except ValueError as error:
            raise ValueError(f'time is "{_cut(value)}": {error}') from error
        if time.tzinfo is None:
            raise ValueError(f'time is "{_cut(value)}", which has no time zone such as Z')
        return round(time.timestamp() * 1000) * 10**6
    return _seconds_ns("time", value)


def _seconds_ns(field: str, value: float | str) -> int:
    try:
        seconds = float(value)
    except ValueError as error:
        raise ValueError(f'{field} is "{_cut(str(value))}", expected seconds') from error
    if not 0 <= seconds <= _TIME_S_MAX:  # NaN neither
        raise ValueError(f"{field} is {seconds:g}, expected 0 to {_TIME_S_MAX:g} seconds")
    return round(seconds * 1000) * 10**6


def _explained(problem: str) -> str:
    match problem:
        case "bad name":
            return "expected the name of a node, or namespace and name of a pod"
        case "negative":
            return "an amount is negative"
        case "too large":
            return "an amount is larger than any machine has"
        case _:
            return problem


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# --- writing ---


def _line(measurement: Measurement) -> UsageLine:
    p95, peak = measurement.p95, measurement.peak
    return UsageLine(
        time=_number(measurement.time_ns, _NANOSECONDS),
        node=measurement.node,
        namespace=measurement.namespace,
        pod=measurement.pod,
        workload=measurement.workload,
        cpu=_number(measurement.average.cpu_milli, 1000),
        memory=measurement.average.memory_bytes,
        window=_number(measurement.window_ns, _NANOSECONDS),
        cpu_p95=None if p95 is None else _number(p95.cpu_milli, 1000),
        memory_p95=None if p95 is None else p95.memory_bytes,
        cpu_peak=None if peak is None else _number(peak.cpu_milli, 1000),
        memory_peak=None if peak is None else peak.memory_bytes,
    )


def _number(count: int, unit: int) -> float:
    """A whole number without a fraction, so that it is written as one."""
    whole, rest = divmod(count, unit)
    return whole if not rest else round(whole + rest / unit, 3)
