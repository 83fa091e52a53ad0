"""The trace of Azure of 2019 (AzurePublicDatasetV2): virtual machines, and their CPU use.

Its files have no header. A virtual machine is a pod. The trace has no nodes: they come from another
file, or from manifests.

    vmtable           a pod for each machine, from vmcreated to vmdeleted; cores and memory are
                      those of its bucket, the open ones (>24, >64) are read as 30 cores and 70Gi;
                      the deployment is the owner
    vm_cpu_readings   the average of five minutes, in percent of the cores. Memory is not measured

Identifiers are long and have characters that names cannot have: a pod is called by a hash of them.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from kubestow.api.files import Document
from kubestow.simulator.scenario.scenario import Arrival, Scenario
from kubestow.simulator.traces.csv_rows import CsvRow, headless_rows
from kubestow.simulator.traces.parts import TracePod, pod_document, pod_spec, trace_scenario
from kubestow.simulator.usage.series import UsePoint

_TABLE: Final = (
    "vmid", "subscriptionid", "deploymentid", "vmcreated", "vmdeleted", "maxcpu", "avgcpu",
    "p95maxcpu", "vmcategory", "vmcorecount", "vmmemory",
)  # fmt: skip
_READINGS: Final = ("timestamp", "vmid", "mincpu", "maxcpu", "avgcpu")
_OPEN_BUCKETS: Final = {">24": "30", ">64": "70"}


def azure_scenario(machines: Path, documents: Sequence[Document]) -> Scenario:
    """The trace of a file on the nodes of `documents`; InputError as that of other readers."""
    found: list[TracePod] = []
    lines: dict[str, int] = {}
    last_s = 0.0
    for row in headless_rows(machines, _TABLE):
        name = vm_name(row.required("vmid"))
        if name in lines:
            raise row.error("vmid", f"is that of line {lines[name]}")
        lines[name] = row.line
        arrival = _arrival(row, name)
        found.append(TracePod(arrival, row.line))
        last_s = max(last_s, arrival.time_s + (arrival.leaves_after_s or 0.0))
    return trace_scenario(machines, documents, found, last_s=last_s)


def azure_use(path: Path) -> Iterator[UsePoint]:
    """What virtual machines used, as shares of their cores."""
    for row in headless_rows(path, _READINGS):
        name = vm_name(row.required("vmid"))
        yield UsePoint(f"default/{name}", row.time("timestamp"), row.percent("avgcpu"), math.nan)


def vm_name(identifier: str) -> str:
    """The name of the pod of a virtual machine."""
    return f"vm-{_short(identifier)}"


def _arrival(row: CsvRow, name: str) -> Arrival:
    created_s, deleted_s = row.time("vmcreated"), row.time("vmdeleted")
    if deleted_s < created_s:
        raise row.error("vmdeleted", f"is {deleted_s:g}, before vmcreated {created_s:g}")
    requests = {"cpu": _bucket(row, "vmcorecount"), "memory": f"{_bucket(row, 'vmmemory')}Gi"}
    return Arrival(
        created_s,
        pod_document(name, "default", pod_spec(requests)),
        owner=f"deployment-{_short(row.text('deploymentid'))}",
        leaves_after_s=deleted_s - created_s,
    )


def _bucket(row: CsvRow, column: str) -> str:
    text = row.text(column)
    return _OPEN_BUCKETS.get(text) or str(row.integer(column, least=1))


def _short(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
