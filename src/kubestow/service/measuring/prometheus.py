"""Measurements of a Prometheus: instant queries for CPU and memory, of nodes and of pods.

The time of an answer is that of the query; how old its data may be is up to the query, such as the
range of a rate.
"""

import math
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from kubestow.config.load_aware_args import LoadSource
from kubestow.errors import DecodeError
from kubestow.service.measuring.metrics_api import Requests
from kubestow.service.measuring.reader import MeasurementBatch
from kubestow.usage.measurement import Amounts, Measurement

ANSWER_BYTES_MAX: Final = 32 << 20
SERIES_MAX: Final = 500_000

# The labels that name what was measured.
_Key = tuple[str, ...]


class _Series(msgspec.Struct, frozen=True):
    metric: dict[str, str] = {}
    value: tuple[float, str] | None = None


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    result_type: str = ""
    result: tuple[_Series, ...] = ()


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    status: str = ""
    error: str = ""
    data: _Data = _Data()


_DECODER: Final = msgspec.json.Decoder(_Answer)


class _Found(NamedTuple):
    """Values by their labels, and how many series have none that is of use."""

    values: Mapping[_Key, tuple[int, float]]
    bad_count: int


class PrometheusApi:
    def __init__(self, requests: Requests, source: LoadSource) -> None:
        self._requests = requests
        self._source = source

    @property
    def name(self) -> str:
        return "Prometheus"

    async def read(self) -> AsyncIterator[MeasurementBatch]:
        source = self._source
        label = (source.node_label,)
        cpu = await self._query(source.cpu_query, label)
        memory = await self._query(source.memory_query, label)
        yield _joined(cpu, memory)
        if source.pods and source.pod_cpu_query and source.pod_memory_query:
            labels = ("namespace", "pod")
            cpu = await self._query(source.pod_cpu_query, labels)
            memory = await self._query(source.pod_memory_query, labels)
            yield _joined(cpu, memory)

    async def _query(self, query: str, labels: _Key) -> _Found:
        path = f"/api/v1/query?query={quote(query, safe='')}"
        return found_in(await self._requests.request("GET", path), labels)


def found_in(body: bytes, labels: _Key) -> _Found:
    """The values of an answer by these labels; DecodeError if it is no instant vector."""
    if len(body) > ANSWER_BYTES_MAX:
        raise DecodeError(f"the answer has {len(body)} bytes, more than {ANSWER_BYTES_MAX}")
    try:
        answer = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(f"not an answer of Prometheus: {error}") from error
    if answer.status != "success" or answer.data.result_type != "vector":
        problem = answer.error[:200] or f'a result of type "{answer.data.result_type[:40]}"'
        raise DecodeError(f"the query gave {problem}, expected an instant vector")
    series = answer.data.result
    values: dict[_Key, tuple[int, float]] = {}
    for each in series[:SERIES_MAX]:
        key = tuple([each.metric.get(label, "") for label in labels])
        value = _number(each)
        if value is not None and all(key) and key not in values:
            values[key] = value
    return _Found(values, len(series) - len(values))


def _number(series: _Series) -> tuple[int, float] | None:
    """The time and the value; None unless both are finite numbers, the value in thousandths too."""
    if series.value is None:
        return None
    time_s, text = series.value
    try:
        number = float(text)
    except ValueError:
        return None
    if not (math.isfinite(number * 1000) and 0 <= time_s <= 10**11):
        return None
    return round(time_s * 1000) * 10**6, number


def _joined(cpu: _Found, memory: _Found) -> MeasurementBatch:
    """What has both numbers."""
    unmatched = len(cpu.values.keys() ^ memory.values.keys())
    return MeasurementBatch(
        list(_measurements(cpu, memory)), cpu.bad_count + memory.bad_count + unmatched
    )


def _measurements(cpu: _Found, memory: _Found) -> Iterator[Measurement]:
    for key, (time_ns, cores) in cpu.values.items():
        used = memory.values.get(key)
        if used is None:
            continue
        # The older one counts: what is measured is not newer than its parts.
        time_ns = min(time_ns, used[0])
        amounts = Amounts(round(cores * 1000), round(used[1]))
        if len(key) == 1:
            yield Measurement(time_ns, amounts, node=key[0])
        else:
            yield Measurement(time_ns, amounts, namespace=key[0], pod=key[1])
