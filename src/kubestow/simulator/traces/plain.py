"""A trace as plain CSV: a line for each pod, or for a number of equal pods.

    name,at,duration,cpu,memory,gpu,priority,count
    web,0,,500m,1Gi,,100,3
    train,1h,30m,8,64Gi,2,,1

and, unless nodes come from manifests, a line for each node or a number of equal nodes:

    name,count,cpu,memory,gpu,zone,label.pool
    node,10,64,256Gi,8,zone-a,gpu

Columns with a domain, such as `example.com/fpga`, are extended resources, and `gpu` is short for
`nvidia.com/gpu`. docs/guides/traces.md describes the columns.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from kubestow.api.files import Document
from kubestow.api.labels import label_value_errors, qualified_name_errors
from kubestow.api.topology import ZONE_LABEL
from kubestow.errors import InputError
from kubestow.simulator.defaults import NODES_PER_CLUSTER
from kubestow.simulator.scenario.scenario import Arrival, Scenario
from kubestow.simulator.traces.csv_rows import CsvRow, csv_rows
from kubestow.simulator.traces.parts import (
    GPU,
    TracePod,
    pod_document,
    pod_spec,
    trace_node,
    trace_scenario,
)

POD_COLUMNS: Final = (
    "name", "namespace", "owner", "at", "duration", "cpu", "memory", "ephemeral-storage", "gpu",
    "priority", "count",
)  # fmt: skip
NODE_COLUMNS: Final = (
    "name", "count", "cpu", "memory", "ephemeral-storage", "gpu", "pods", "zone",
)  # fmt: skip
COUNT_MAX: Final = 100_000
_LABEL: Final = "label."
_NATIVE: Final = ("cpu", "memory", "ephemeral-storage")
_PRIORITY_MAX: Final = 1_000_000_000


def plain_scenario(
    pods: Path, *, nodes: Path | None = None, documents: Sequence[Document] = ()
) -> Scenario:
    """The pods of a file, on the nodes of another one and of `documents`."""
    cluster = [*documents, *(plain_nodes(nodes) if nodes is not None else ())]
    found: list[TracePod] = []
    lines: dict[tuple[str, str], int] = {}
    last_s = 0.0
    rows = csv_rows(
        pods,
        required=("at",),
        optional=[column for column in POD_COLUMNS if column != "at"],
        is_more=_is_extended,
    )
    for row in rows:
        for arrival in _arrivals(row):
            metadata = arrival.document["metadata"]
            key = (metadata["namespace"], metadata["name"])
            if key in lines:
                raise row.error(
                    "name", f'gives the pod "{key[0]}/{key[1]}", as line {lines[key]} does'
                )
            lines[key] = row.line
            found.append(TracePod(arrival, row.line))
            last_s = max(last_s, arrival.time_s + (arrival.duration_s or 0.0))
    return trace_scenario(pods, cluster, found, last_s=last_s)


def _arrivals(row: CsvRow) -> Iterator[Arrival]:
    time_s, duration_s = row.seconds("at"), row.seconds("duration")
    if time_s is None:
        raise row.error("at", "is empty, expected a time")
    name = row.name("name") if row.text("name") else f"line-{row.line}"
    namespace = row.name("namespace") if row.text("namespace") else "default"
    owner = row.text("owner") or name
    priority = row.integer("priority", default=0, least=-_PRIORITY_MAX, most=_PRIORITY_MAX)
    spec = pod_spec(_amounts(row), **({"priority": priority} if priority else {}))
    count = row.integer("count", default=1, least=1, most=COUNT_MAX)
    for number in range(1, count + 1):
        own_name = name if count == 1 else f"{name}-{number}"
        yield Arrival(time_s, pod_document(own_name, namespace, spec), duration_s, owner)


def plain_nodes(path: Path) -> list[Document]:
    """The nodes of a file."""
    documents: list[Document] = []
    lines: dict[str, int] = {}
    rows = csv_rows(
        path,
        required=("name",),
        optional=[column for column in NODE_COLUMNS if column != "name"],
        is_more=lambda column: _is_extended(column) or _is_label(column),
    )
    for row in rows:
        name, count = row.name("name"), row.integer("count", default=1, least=1, most=COUNT_MAX)
        slots = row.quantity("pods", is_whole=True)
        capacity = {**_amounts(row), **({"pods": slots} if slots else {})}
        labels = _labels(row)
        for number in range(1, count + 1):
            own_name = name if count == 1 else f"{name}-{number}"
            if own_name in lines:
                raise row.error("name", f'gives "{own_name}", as line {lines[own_name]} does')
            lines[own_name] = row.line
            place = f"{path}, line {row.line}"
            documents.append(Document(trace_node(own_name, capacity, labels), place))
        if len(documents) > NODES_PER_CLUSTER:
            raise InputError(f"{path}: has more than {NODES_PER_CLUSTER} nodes")
    return documents


def _amounts(row: CsvRow) -> dict[str, str]:
    amounts = {column: row.quantity(column, is_whole=False) for column in _NATIVE}
    amounts[GPU] = row.quantity("gpu", is_whole=True)
    for column in filter(_is_extended, row.cells):
        amounts[column] = row.quantity(column, is_whole=True) or amounts.get(column, "")
    return {name: amount for name, amount in amounts.items() if amount}


def _labels(row: CsvRow) -> dict[str, str]:
    labels = {ZONE_LABEL: row.text("zone")} if row.text("zone") else {}
    for column in filter(_is_label, row.cells):
        if value := row.text(column):
            labels[column.removeprefix(_LABEL)] = value
    for key, value in labels.items():
        if errors := label_value_errors(value):
            column = "zone" if key == ZONE_LABEL else f"{_LABEL}{key}"
            raise row.error(column, f'is "{value}": {errors[0]}')
    return labels


def _is_extended(column: str) -> bool:
    return "/" in column and not column.startswith(_LABEL) and not qualified_name_errors(column)


def _is_label(column: str) -> bool:
    key = column.removeprefix(_LABEL)
    return column.startswith(_LABEL) and not qualified_name_errors(key)
