"""Measurements of metrics.k8s.io, which metrics-server and others serve.

Nodes are read in one request, pods in one for each namespace: the answer about all pods of a large
cluster would take long to decode, and nothing else goes on meanwhile.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import datetime
from typing import Final, Protocol
from urllib.parse import quote

import msgspec

from kubestow.api.duration import parse_duration
from kubestow.api.quantity import parse_quantity
from kubestow.errors import DecodeError
from kubestow.service.measuring.reader import MeasurementBatch
from kubestow.usage.measurement import Amounts, Measurement

PATH: Final = "/apis/metrics.k8s.io/v1beta1"
ANSWER_BYTES_MAX: Final = 32 << 20
_NANOSECONDS: Final = 10**9


class Requests(Protocol):
    async def request(self, method: str, path: str) -> bytes: ...


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class _Usage(msgspec.Struct, frozen=True):
    cpu: str | int | float = "0"
    memory: str | int | float = "0"


class _Container(msgspec.Struct, frozen=True):
    usage: _Usage = _Usage()


class _Measured(msgspec.Struct, frozen=True):
    """NodeMetrics or PodMetrics."""

    metadata: _Meta = _Meta()
    timestamp: datetime | None = None
    window: str = "0s"
    usage: _Usage | None = None
    containers: tuple[_Container, ...] = ()


class _List(msgspec.Struct, frozen=True):
    items: tuple[_Measured, ...] = ()


_DECODER: Final = msgspec.json.Decoder(_List)


class MetricsApi:
    """`namespaces` are those whose pods are read; none if pods are not."""

    def __init__(self, requests: Requests, namespaces: Callable[[], Iterable[str]]) -> None:
        self._requests = requests
        self._namespaces = namespaces

    @property
    def name(self) -> str:
        return "metrics.k8s.io"

    async def read(self) -> AsyncIterator[MeasurementBatch]:
        yield decoded(await self._requests.request("GET", f"{PATH}/nodes"))
        for namespace in list(self._namespaces()):
            path = f"{PATH}/namespaces/{quote(namespace, safe='')}/pods"
            yield decoded(await self._requests.request("GET", path))


def decoded(body: bytes) -> MeasurementBatch:
    """The measurements of an answer; DecodeError if it is none."""
    if len(body) > ANSWER_BYTES_MAX:
        raise DecodeError(f"the answer has {len(body)} bytes, more than {ANSWER_BYTES_MAX}")
    try:
        items = _DECODER.decode(body).items
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(f"not a list of metrics: {error}") from error
    measurements: list[Measurement] = []
    bad_count = 0
    for item in items:
        try:
            measurements.append(_measurement(item))
        except (ValueError, OverflowError):
            bad_count += 1
    return MeasurementBatch(measurements, bad_count)


def _measurement(item: _Measured) -> Measurement:
    if item.timestamp is None:
        raise ValueError("no timestamp")
    time_ns = round(item.timestamp.timestamp() * 1000) * 10**6
    window_ns = parse_duration(item.window)
    meta = item.metadata
    if item.usage is not None:
        return Measurement(time_ns, _sum((item.usage,)), node=meta.name, window_ns=window_ns)
    used = _sum([container.usage for container in item.containers])
    return Measurement(time_ns, used, namespace=meta.namespace, pod=meta.name, window_ns=window_ns)


def _sum(usages: Sequence[_Usage]) -> Amounts:
    cpu = sum(parse_quantity(usage.cpu).nano for usage in usages)
    memory = sum(parse_quantity(usage.memory).nano for usage in usages)
    # Not by the 64-bit values of quantities, which wrap around.
    return Amounts(-(-cpu * 1000 // _NANOSECONDS), -(-memory // _NANOSECONDS))
