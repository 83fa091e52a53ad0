"""Counters, gauges and histograms, as cheap as they can be in Python.

A `Family` is one metric with its labels, a child of it one series. A caller that observes often
keeps the child, so that it is looked up by its labels once. Everything runs on one event loop, so
nothing is locked.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Final, Generic, Literal, Protocol, TypeVar

MetricKind = Literal["counter", "gauge", "histogram"]

# Replaces the value of a label that is not allowed (`--allow-metric-labels`).
UNEXPECTED: Final = "unexpected"
_EXPONENT_FROM: Final = 6  # Go writes 1e+06 where Python writes 1000000.0


class Child(Protocol):
    """One series."""

    def samples(self, name: str, labels: str) -> Iterator[str]:
        """The lines of the series; `labels` is empty or `a="1",b="2"`."""
        ...

    def reset(self) -> None: ...


class Counter:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        self.value += amount

    def samples(self, name: str, labels: str) -> Iterator[str]:
        yield f"{_series(name, labels)} {go_float(self.value)}\n"

    def reset(self) -> None:
        self.value = 0.0


class Gauge:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        self.value += amount

    def set(self, value: float) -> None:
        self.value = value

    def samples(self, name: str, labels: str) -> Iterator[str]:
        yield f"{_series(name, labels)} {go_float(self.value)}\n"

    def reset(self) -> None:
        """A gauge stays: it shows the current state, which a reset does not change."""


class Histogram:
    """bounds   the upper bounds of the buckets but the last; `lowest` is the first of them"""

    __slots__ = ("_prefixes", "bounds", "counts", "lowest", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.lowest = bounds[0]
        # Beginnings of the bucket lines, made at the first scrape.
        self._prefixes: list[str] | None = None
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        # Most durations are in the lowest bucket, where no search is needed.
        self.counts[0 if value <= self.lowest else bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self.counts)

    def samples(self, name: str, labels: str) -> Iterator[str]:
        if self._prefixes is None:
            before = f"{labels}," if labels else ""
            bounds = [*map(go_float, self.bounds), "+Inf"]
            self._prefixes = [f'{name}_bucket{{{before}le="{bound}"}} ' for bound in bounds]
        total = 0
        for prefix, count in zip(self._prefixes, self.counts, strict=True):
            total += count
            yield f"{prefix}{total}\n"
        yield f"{_series(f'{name}_sum', labels)} {go_float(self.sum)}\n"
        yield f"{_series(f'{name}_count', labels)} {total}\n"

    def reset(self) -> None:
        self.counts = [0] * len(self.counts)
        self.sum = 0.0


C = TypeVar("C", bound=Child)
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Family(Generic[C]):
    """One metric: all its series."""

    def __init__(
        self,
        name: str,
        help: str,
        kind: MetricKind,
        label_names: Sequence[str],
        make: Callable[[], C],
    ) -> None:
        self.name = name
        self.help = help
        self.kind: MetricKind = kind
        self.label_names = tuple(label_names)
        self._make = make
        self._children: dict[tuple[str, ...], C] = {}
        # Label name → the values it may have; from the command line.
        self.allowed_values: dict[str, frozenset[str]] = {}
        # Called before the children are read, and on a reset.
        self.refresh: Callable[[], None] | None = None
        self.forget: Callable[[], None] | None = None
        if not label_names:
            self._children[()] = make()

    def labels(self, *values: str) -> C:
        """The series with these values, in the order of the label names."""
        child = self._children.get(values)
        if child is None:
            assert len(values) == len(self.label_names), (self.name, values)
            allowed = self._allowed(values)
            if allowed != values:
                return self.labels(*allowed)
            child = self._children[values] = self._make()
        return child

    @property
    def only(self) -> C:
        """The single series of a metric without labels."""
        return self._children[()]

    def children(self) -> dict[tuple[str, ...], C]:
        return self._children

    def reset(self) -> None:
        """Start from 0; the children stay the same objects."""
        if self.forget is not None:
            self.forget()
        for child in self._children.values():
            child.reset()

    def text(self) -> str:
        """HELP, TYPE and all series, in the order of their labels."""
        if self.refresh is not None:
            self.refresh()
        lines = [
            f"# HELP {self.name} {_escaped_help(self.help)}\n",
            f"# TYPE {self.name} {self.kind}\n",
        ]
        for values, child in sorted(self._children.items()):
            lines.extend(child.samples(self.name, label_text(self.label_names, values)))
        return "".join(lines)

    def _allowed(self, values: tuple[str, ...]) -> tuple[str, ...]:
        if not self.allowed_values:
            return values
        return tuple(
            value if value in self.allowed_values.get(name, (value,)) else UNEXPECTED
            for name, value in zip(self.label_names, values, strict=True)
        )


class KeptSeries(dict[K, V]):
    """Series by a key of the caller's, each found by its labels once: `kept[key]`."""

    __slots__ = ("_find",)

    def __init__(self, find: Callable[[K], V]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, key: K) -> V:
        found = self[key] = self._find(key)
        return found


def label_text(names: Sequence[str], values: Sequence[str]) -> str:
    """`a="1",b="2"`, by name, as Go's library writes them."""
    pairs = sorted(zip(names, values, strict=True))
    return ",".join(f'{name}="{escaped(value)}"' for name, value in pairs)


def escaped(value: str) -> str:
    """A label's value in the text format."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@lru_cache(maxsize=4096)
def go_float(value: float) -> str:
    """A number as Go prints it: the shortest text that reads back as the same number."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    decimal = Decimal(repr(float(value))).normalize()
    sign, digits, _ = decimal.as_tuple()
    exponent = decimal.adjusted()
    if not value:
        return "0"
    if -4 <= exponent < _EXPONENT_FROM:
        return f"{decimal:f}"
    text = "".join(map(str, digits))
    mantissa = text if len(text) == 1 else f"{text[0]}.{text[1:]}"
    return f"{'-' if sign else ''}{mantissa}e{'+' if exponent >= 0 else '-'}{abs(exponent):02d}"


def _series(name: str, labels: str) -> str:
    return f"{name}{{{labels}}}" if labels else name


def _escaped_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
