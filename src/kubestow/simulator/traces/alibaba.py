"""The trace of Alibaba of 2018 (cluster-trace-v2018): machines, containers, and what they used.

Its files have no header. A container is a pod; batch jobs are other files, which are not read.

    machine_meta      a node for each machine: cpu_num cores; of memory the trace has a share of the
                      largest machine, which is read as `MEMORY_OF_100`
    container_meta    a pod for each container, which arrives at its first time; 100 of cpu_request
                      and cpu_limit are a core, mem_size is a share as that of machines; app_du
                      is the owner. It leaves at the first line that has it as stopped
    container_usage   percent of cpu_request and of mem_size from a time on

Names have `-` for `_`: container `c_1` is the pod `c-1`.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kubestow.api.files import Document
from kubestow.simulator.scenario.scenario import Arrival, Scenario
from kubestow.simulator.traces.csv_rows import CsvRow, headless_rows
from kubestow.simulator.traces.parts import (
    TracePod,
    pod_document,
    trace_node,
    trace_scenario,
)
from kubestow.simulator.usage.series import UsePoint

MEMORY_OF_100: Final = 384 * 2**30
POD_SLOTS: Final = "250"
_MACHINE: Final = (
    "machine_id", "time_stamp", "failure_domain_1", "failure_domain_2", "cpu_num", "mem_size",
    "status",
)  # fmt: skip
_CONTAINER: Final = (
    "container_id", "machine_id", "time_stamp", "app_du", "status", "cpu_request", "cpu_limit",
    "mem_size",
)  # fmt: skip
_USAGE: Final = (
    "container_id", "machine_id", "time_stamp", "cpu_util_percent", "mem_util_percent", "cpi",
    "mem_gps", "mpki", "net_in", "net_out", "disk_io_percent",
)  # fmt: skip
_STOPPED: Final = "stopped"


def alibaba_scenario(machines: Path, containers: Path) -> Scenario:
    """The trace of two files; InputError names file, line and column of what is wrong."""
    found: dict[str, TracePod] = {}
    last_s = 0.0
    for row in headless_rows(containers, _CONTAINER):
        name, time_s = _name(row, "container_id"), row.time("time_stamp")
        last_s = max(last_s, time_s)
        known = found.get(name)
        if known is None:
            found[name] = TracePod(_arrival(row, name, time_s), row.line)
        elif row.text("status") == _STOPPED and known.arrival.leaves_after_s is None:
            leaves_after_s = max(time_s - known.arrival.time_s, 0.0)
            arrival = known.arrival._replace(leaves_after_s=leaves_after_s)
            found[name] = known._replace(arrival=arrival)
    return trace_scenario(containers, _nodes(machines), list(found.values()), last_s=last_s)


def alibaba_use(path: Path) -> Iterator[UsePoint]:
    """What containers used, as shares of their requests."""
    for row in headless_rows(path, _USAGE):
        yield UsePoint(
            f"default/{_name(row, 'container_id')}",
            row.time("time_stamp"),
            row.percent("cpu_util_percent"),
            row.percent("mem_util_percent"),
        )


def _nodes(path: Path) -> list[Document]:
    documents: dict[str, Document] = {}
    for row in headless_rows(path, _MACHINE):
        name = _name(row, "machine_id")
        if name in documents:
            continue  # a later event of the same machine
        capacity = {
            "cpu": str(row.integer("cpu_num", least=1)),
            "memory": str(_memory(row)),
            "pods": POD_SLOTS,
        }
        documents[name] = Document(trace_node(name, capacity, {}), f"{path}, line {row.line}")
    return list(documents.values())


def _arrival(row: CsvRow, name: str, time_s: float) -> Arrival:
    requests = {"cpu": f"{row.integer('cpu_request') * 10}m", "memory": str(_memory(row))}
    limit = row.integer("cpu_limit", default=0) * 10
    resources = {"requests": requests, **({"limits": {"cpu": f"{limit}m"}} if limit else {})}
    container = {"name": "main", "image": "trace", "resources": resources}
    return Arrival(
        time_s,
        pod_document(name, "default", {"containers": [container]}),
        owner=_plain(row.text("app_du")),
    )


def _memory(row: CsvRow) -> int:
    share = row.percent("mem_size")
    if math.isnan(share):
        raise row.error("mem_size", "is empty, expected a number from 0 to 100")
    return round(share * MEMORY_OF_100)


def _name(row: CsvRow, column: str) -> str:
    return row.renamed(column, _plain).name(column)


def _plain(text: str) -> str:
    return text.replace("_", "-")
