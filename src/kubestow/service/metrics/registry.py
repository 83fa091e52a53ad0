"""All metrics of the process by name, and the text Prometheus reads.

Families are written in the order of their names, as Go's library does. The command line may disable
metrics or restrict the values of labels (`--disabled-metrics`, `--allow-metric-labels`).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from kubestow.service.metrics.instruments import Counter, Family, Gauge, Histogram

Stability = Literal["STABLE", "BETA", "ALPHA"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class MetricsRegistry:
    def __init__(
        self,
        *,
        disabled: Sequence[str] = (),
        allowed_labels: Mapping[str, Mapping[str, frozenset[str]]] | None = None,
        renamed: Mapping[str, str] | None = None,
        hidden: Collection[str] = (),
    ) -> None:
        """`allowed_labels`: metric → label → the values it may have. `renamed`: metric → its name
        in an older version, empty if that does not have it. `hidden`: deprecated for too long."""
        self._disabled = frozenset(disabled)
        self._renamed = renamed or {}
        self._allowed_labels = allowed_labels or {}
        # Any: families of different kinds in one table.
        self._families: dict[str, Family[Any]] = {}
        self._hidden = frozenset(hidden)
        self.disabled_count = 0
        self.hidden_count = 0
        self.registered: dict[Stability, int] = {}

    def counter(
        self, name: str, help: str, labels: Sequence[str] = (), *, stability: Stability = "ALPHA"
    ) -> Family[Counter]:
        family = Family(name, f"[{stability}] {help}", "counter", labels, Counter)
        return self._add(family, stability)

    def gauge(
        self, name: str, help: str, labels: Sequence[str] = (), *, stability: Stability = "ALPHA"
    ) -> Family[Gauge]:
        family = Family(name, f"[{stability}] {help}", "gauge", labels, Gauge)
        return self._add(family, stability)

    def histogram(
        self,
        name: str,
        help: str,
        labels: Sequence[str] = (),
        *,
        buckets: Sequence[float],
        stability: Stability = "ALPHA",
    ) -> Family[Histogram]:
        make: Callable[[], Histogram] = lambda: Histogram(buckets)  # noqa: E731 - typed on purpose
        family = Family(name, f"[{stability}] {help}", "histogram", labels, make)
        return self._add(family, stability)

    def family(self, name: str) -> Family[Any] | None:
        return self._families.get(name)

    def names(self) -> list[str]:
        return sorted(self._families)

    def reset(self) -> None:
        for family in self._families.values():
            family.reset()

    def texts(self) -> Iterator[str]:
        """The text, family by family, so that the event loop can run in between."""
        for name in self.names():
            yield self._families[name].text()

    def _add(self, family: Family[Any], stability: Stability) -> Family[Any]:
        self.registered[stability] = self.registered.get(stability, 0) + 1
        family.name = self._renamed.get(family.name, family.name)
        family.allowed_values = dict(self._allowed_labels.get(family.name, {}))
        # What is not shown still counts, so that its users need no special case.
        if family.name in self._disabled:
            self.disabled_count += 1
        elif family.name in self._hidden:
            self.hidden_count += 1
        elif family.name:
            assert family.name not in self._families, family.name
            self._families[family.name] = family
        return family


def parse_allowed_labels(
    pairs: Mapping[str, str],
) -> dict[str, dict[str, frozenset[str]]]:
    """`metric,label` → `v1,v2` as the command line has it, by metric and label."""
    allowed: dict[str, dict[str, frozenset[str]]] = {}
    for key, values in pairs.items():
        metric, _, label = key.partition(",")
        # The values may be quoted, for the shell or for the flag.
        listed = frozenset(value.strip() for value in values.strip("'\"").split(","))
        allowed.setdefault(metric, {})[label] = listed
    return allowed
