"""The rows of a run as columns, for files, data frames and the page.

A column has the name of the field of its row (`results`), in small letters with `_`; an amount by
resource becomes a column per resource, such as `requests.cpu`. Amounts and times are plain numbers
in the units of the rows, whichever way the page shows them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import UnsetType

from kubestow.simulator.reports.figures import (
    Figures,
    in_order,
    used_share,
    waited_s,
    waiting_times,
)
from kubestow.simulator.results import (
    GATED,
    OTHER_SCHEDULER,
    PENDING,
    Change,
    NodeRow,
    PodRow,
    RunResult,
    Sample,
)
from kubestow.simulator.usage.results import RunUsage, SampleUsage

_Row = TypeVar("_Row")
_UNPLACED: Final = (PENDING, GATED, OTHER_SCHEDULER)


class Kind(Enum):
    """What the values of a column are: decides their type in files and how the page shows them."""

    TEXT = "text"
    COUNT = "count"
    SECONDS = "seconds"
    SHARE = "share"
    # With a fraction, such as minutes.
    NUMBER = "number"
    # Integers, in the unit of the resource.
    AMOUNT = "amount"


class Column(NamedTuple):
    """`resource` is the one that an amount is of."""

    name: str
    kind: Kind
    values: list[Any]
    resource: str = ""


class Table(NamedTuple):
    """All columns have the same length. `name` is a part of file names."""

    name: str
    title: str
    columns: list[Column]

    @property
    def row_count(self) -> int:
        return len(self.columns[0].values) if self.columns else 0

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)


# Of all tables, in their order.
TABLE_NAMES: Final = ("pods", "nodes", "samples", "changes", "owners", "reasons", "resources")
# Of runs whose scenario says what pods use.
USAGE_TABLE_NAMES: Final = ("usage", "node_usage", "owner_usage")


def tables_of(result: RunResult, figures: Figures) -> list[Table]:
    """All tables of a run; one that has no rows is there, too, with its columns."""
    return [
        pods_table(result.pods),
        nodes_table(result.nodes),
        samples_table(result.samples),
        changes_table(result.changes),
        owners_table(result.pods),
        reasons_table(result.pods),
        resources_table(figures),
        *([] if isinstance(result.usage, UnsetType) else usage_tables(result.usage)),
    ]


def pods_table(pods: Sequence[PodRow]) -> Table:
    return Table(
        "pods",
        "Pods",
        [
            _text("namespace", pods, lambda pod: pod.namespace),
            _text("name", pods, lambda pod: pod.name),
            _text("owner", pods, lambda pod: pod.owner),
            _text("outcome", pods, lambda pod: pod.outcome),
            _text("node", pods, lambda pod: pod.node),
            _count("priority", pods, lambda pod: pod.priority),
            *_amounts("requests", pods, lambda pod: pod.requests),
            _seconds("created_s", pods, lambda pod: pod.created_s),
            _seconds("scheduled_s", pods, lambda pod: pod.scheduled_s),
            _seconds("waited_s", pods, waited_s),
            _seconds("ended_s", pods, lambda pod: pod.ended_s),
            _count("attempts", pods, lambda pod: pod.attempts),
            _text("reason", pods, lambda pod: pod.reason),
            _text("message", pods, lambda pod: pod.message),
        ],
    )


def nodes_table(nodes: Sequence[NodeRow]) -> Table:
    return Table(
        "nodes",
        "Nodes",
        [
            _text("name", nodes, lambda node: node.name),
            _text("zone", nodes, lambda node: node.zone),
            _text("pool", nodes, lambda node: node.pool),
            _seconds("joined_s", nodes, lambda node: node.joined_s),
            _seconds("left_s", nodes, lambda node: node.left_s),
            _count("pods", nodes, lambda node: node.pods),
            _count("allowed_pods", nodes, lambda node: node.allowed_pods),
            *_usage(nodes, lambda node: node.requested, lambda node: node.allocatable),
        ],
    )


def samples_table(samples: Sequence[Sample]) -> Table:
    counts = (
        "nodes", "running", "active", "backoff", "unschedulable", "gated", "arrived", "placed",
        "ended", "preempted", "evicted",
    )  # fmt: skip
    imbalances = in_order({resource for sample in samples for resource in sample.imbalance})
    return Table(
        "samples",
        "The cluster over time",
        [
            _seconds("time_s", samples, lambda sample: sample.time_s),
            *(
                Column(name, Kind.COUNT, [getattr(sample, name) for sample in samples])
                for name in counts
            ),
            *_usage(samples, lambda sample: sample.requested, lambda sample: sample.allocatable),
            *_amounts("stranded", samples, lambda sample: sample.stranded),
            *(
                Column(
                    f"imbalance.{resource}",
                    Kind.SHARE,
                    [sample.imbalance.get(resource) for sample in samples],
                )
                for resource in imbalances
            ),
            *_sample_usage([sample.usage for sample in samples]),
            *_sample_goals([sample.goals for sample in samples]),
        ],
    )


def _sample_usage(usages: Sequence[SampleUsage | UnsetType]) -> list[Column]:
    """The columns about use, if the samples have it."""
    found = [usage for usage in usages if not isinstance(usage, UnsetType)]
    if len(found) != len(usages) or not found:
        return []
    return [
        *_amounts("in_use", found, lambda usage: usage.used),
        *_counts("hot_nodes", found, lambda usage: usage.hot_nodes),
        *_shares("in_use_p95", found, lambda usage: usage.p95_share),
        *_shares("in_use_max", found, lambda usage: usage.max_share),
        Column("lost_cpu_s", Kind.NUMBER, [usage.lost_cpu_s for usage in found]),
        _count("memory_evictions", found, lambda usage: usage.memory_evictions),
    ]


def _sample_goals(goals: Sequence[dict[str, float] | UnsetType]) -> list[Column]:
    """A column for each goal of rebalancing that is followed."""
    found: list[dict[str, float]] = [{} if isinstance(each, UnsetType) else each for each in goals]
    return [
        Column(f"goal.{name}", Kind.NUMBER, [each.get(name) for each in found])
        for name in dict.fromkeys(name for each in found for name in each)
    ]


def usage_tables(usage: RunUsage) -> list[Table]:
    """What nodes had in use, and what their pods lost."""
    rows, nodes, owners = usage.resources, usage.nodes, usage.owners
    shares = ("mean_share", "p50_share", "p95_share", "p99_share", "max_share")
    return [
        Table(
            "usage",
            "In use",
            [
                _text("resource", rows, lambda row: row.resource),
                *(
                    Column(name, Kind.SHARE, [getattr(row, name) for row in rows])
                    for name in shares
                ),
                Column("hot_node_minutes", Kind.NUMBER, [row.hot_node_minutes for row in rows]),
            ],
        ),
        Table(
            "node_usage",
            "Nodes in use",
            [
                _text("name", nodes, lambda node: node.name),
                *_shares("mean_share", nodes, lambda node: node.mean_share),
                *_shares("max_share", nodes, lambda node: node.max_share),
                *_numbers("hot_minutes", nodes, lambda node: node.hot_minutes),
                Column("lost_cpu_s", Kind.NUMBER, [node.lost_cpu_s for node in nodes]),
            ],
        ),
        Table(
            "owner_usage",
            "In use by owner",
            [
                _text("owner", owners, lambda owner: owner.owner),
                Column("demanded_cpu_s", Kind.NUMBER, [owner.demanded_cpu_s for owner in owners]),
                Column("lost_cpu_s", Kind.NUMBER, [owner.lost_cpu_s for owner in owners]),
                _count("memory_evictions", owners, lambda owner: owner.memory_evictions),
            ],
        ),
    ]


def changes_table(changes: Sequence[Change]) -> Table:
    return Table(
        "changes",
        "What happened",
        [
            _seconds("time_s", changes, lambda change: change.time_s),
            _text("kind", changes, lambda change: change.kind),
            _text("subject", changes, lambda change: change.subject),
            _text("detail", changes, lambda change: change.detail),
        ],
    )


def owners_table(pods: Sequence[PodRow]) -> Table:
    """A row for all pods of one owner in one namespace, in the order of their first pods."""
    owners: dict[tuple[str, str], list[PodRow]] = {}
    for pod in pods:
        owners.setdefault((pod.namespace, pod.owner), []).append(pod)
    keys, groups = list(owners), list(owners.values())
    waits = [waiting_times(group) for group in groups]
    return Table(
        "owners",
        "Pods by owner",
        [
            _text("namespace", keys, lambda key: key[0]),
            _text("owner", keys, lambda key: key[1]),
            _count("pods", groups, len),
            _count("placed", waits, lambda wait: wait.count if wait else 0),
            _count("waiting", groups, lambda group: sum(pod.outcome in _UNPLACED for pod in group)),
            _seconds("waited_p50_s", waits, lambda wait: wait.p50_s if wait else None),
            _seconds("waited_p99_s", waits, lambda wait: wait.p99_s if wait else None),
            _seconds("waited_max_s", waits, lambda wait: wait.max_s if wait else None),
        ],
    )


def reasons_table(pods: Sequence[PodRow]) -> Table:
    """Why pods wait at the end, the most frequent message first."""
    counts = Counter(
        (pod.reason, pod.message) for pod in pods if pod.outcome in _UNPLACED
    ).most_common()
    return Table(
        "reasons",
        "Why pods wait",
        [
            _count("pods", counts, lambda entry: entry[1]),
            _text("reason", counts, lambda entry: entry[0][0]),
            _text("message", counts, lambda entry: entry[0][1]),
        ],
    )


def resources_table(figures: Figures) -> Table:
    rows = figures.resources
    shares = (
        "used_share", "imbalance", "mean_used_share", "peak_used_share", "mean_stranded_share",
        "mean_imbalance",
    )  # fmt: skip
    return Table(
        "resources",
        "Resources",
        [
            _text("resource", rows, lambda row: row.resource),
            Column("allocatable", Kind.AMOUNT, [row.allocatable for row in rows]),
            Column("requested", Kind.AMOUNT, [row.requested for row in rows]),
            *(Column(name, Kind.SHARE, [getattr(row, name) for row in rows]) for name in shares),
        ],
    )


def _text(name: str, rows: Iterable[_Row], value: Callable[[_Row], str]) -> Column:
    return Column(name, Kind.TEXT, list(map(value, rows)))


def _count(name: str, rows: Iterable[_Row], value: Callable[[_Row], int]) -> Column:
    return Column(name, Kind.COUNT, list(map(value, rows)))


def _seconds(name: str, rows: Iterable[_Row], value: Callable[[_Row], float | None]) -> Column:
    return Column(name, Kind.SECONDS, list(map(value, rows)))


def _counts(
    name: str, rows: Sequence[_Row], values: Callable[[_Row], dict[str, int]]
) -> list[Column]:
    return _by_resource(name, Kind.COUNT, rows, values)


def _shares(
    name: str, rows: Sequence[_Row], values: Callable[[_Row], dict[str, float]]
) -> list[Column]:
    return _by_resource(name, Kind.SHARE, rows, values)


def _numbers(
    name: str, rows: Sequence[_Row], values: Callable[[_Row], dict[str, float]]
) -> list[Column]:
    return _by_resource(name, Kind.NUMBER, rows, values)


def _by_resource(
    name: str, kind: Kind, rows: Sequence[_Row], values: Callable[[_Row], Mapping[str, float]]
) -> list[Column]:
    """A column per resource of values that are no amounts."""
    each = list(map(values, rows))
    return [
        Column(f"{name}.{resource}", kind, [one.get(resource, 0) for one in each])
        for resource in in_order({resource for one in each for resource in one})
    ]


def _amounts(
    name: str, rows: Sequence[_Row], amounts: Callable[[_Row], dict[str, int]]
) -> list[Column]:
    """A column per resource; a row without the resource has 0 of it."""
    each = list(map(amounts, rows))
    return [
        Column(f"{name}.{resource}", Kind.AMOUNT, [one.get(resource, 0) for one in each], resource)
        for resource in in_order({resource for one in each for resource in one})
    ]


def _usage(
    rows: Sequence[_Row],
    requested: Callable[[_Row], dict[str, int]],
    allocatable: Callable[[_Row], dict[str, int]],
) -> list[Column]:
    """What is requested and what there is of each resource, and the used share."""
    columns: list[Column] = []
    for available in _amounts("allocatable", rows, allocatable):
        resource = available.resource
        used = [requested(row).get(resource, 0) for row in rows]
        shares = [used_share(*pair) for pair in zip(used, available.values, strict=True)]
        columns += [
            Column(f"requested.{resource}", Kind.AMOUNT, used, resource),
            available,
            Column(f"used_share.{resource}", Kind.SHARE, shares),
        ]
    return columns
