"""The trace `openb`: nodes and pods of a GPU cluster (Alibaba, cluster-trace-gpu-v2023).

A node has the label of its GPU model. A pod asks for whole GPUs: shares of one (`gpu_milli`) are
not scheduled by the plugins of kube-scheduler, so a pod with a share has a GPU of its own. A pod
with `gpu_spec` has node affinity to these models.

    arrives   at creation_time
    runs      for deletion_time - scheduled_time, from when it gets a node
    leaves    if it never got a node in the trace (no scheduled_time): at deletion_time, whether it
              runs here or waits, as its owner deleted it then

Some files have the first five columns only: their pods arrive at the start and stay.
"""

from pathlib import Path
from typing import Final

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
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

MODEL_LABEL: Final = "nvidia.com/gpu.product"
# As in the published experiments: the trace has no limit of pods per node.
POD_SLOTS: Final = "1001"
_NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_MORE_COLUMNS: Final = (
    "gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip


def openb_scenario(nodes: Path, pods: Path) -> Scenario:
    """The trace of two files; InputError names file, line and column of what is wrong."""
    documents = _nodes(nodes)
    found: list[TracePod] = []
    names: dict[str, int] = {}
    last_s = 0.0
    for row in csv_rows(pods, required=_POD_COLUMNS, optional=_MORE_COLUMNS):
        name = row.name("name")
        if name in names:
            raise row.error("name", f'is "{name}", as in line {names[name]}')
        names[name] = row.line
        found.append(TracePod(_arrival(row, name), row.line))
        last_s = max(last_s, row.seconds("creation_time") or 0.0, row.seconds("deletion_time") or 0)
    return trace_scenario(pods, documents, found, last_s=last_s, pool_label=MODEL_LABEL)


def _nodes(path: Path) -> list[Document]:
    documents: list[Document] = []
    lines: dict[str, int] = {}
    for row in csv_rows(path, required=_NODE_COLUMNS, optional=()):
        name = row.name("sn")
        if name in lines:
            raise row.error("sn", f'is "{name}", as in line {lines[name]}')
        lines[name] = row.line
        gpus = row.integer("gpu", default=0)
        capacity = {
            "cpu": f"{row.integer('cpu_milli')}m",
            "memory": f"{row.integer('memory_mib')}Mi",
            "pods": POD_SLOTS,
            **({GPU: str(gpus)} if gpus else {}),
        }
        model = row.text("model")
        labels = {MODEL_LABEL: model} if model else {}
        documents.append(Document(trace_node(name, capacity, labels), f"{path}, line {row.line}"))
    return documents


def _arrival(row: CsvRow, name: str) -> Arrival:
    created_s = row.seconds("creation_time") or 0.0
    scheduled_s, deleted_s = row.seconds("scheduled_time"), row.seconds("deletion_time")
    document = pod_document(name, "default", pod_spec(_requests(row), **_affinity(row)))
    owner = row.text("qos")
    if deleted_s is None:
        return Arrival(created_s, document, owner=owner)
    if scheduled_s is None:
        return Arrival(
            created_s, document, owner=owner, leaves_after_s=max(deleted_s - created_s, 0.0)
        )
    if deleted_s < scheduled_s:
        raise row.error("deletion_time", f"is {deleted_s:g}, before scheduled_time {scheduled_s:g}")
    return Arrival(created_s, document, deleted_s - scheduled_s, owner)


def _requests(row: CsvRow) -> dict[str, str]:
    gpus = row.integer("num_gpu", default=0)
    return {
        "cpu": f"{row.integer('cpu_milli')}m",
        "memory": f"{row.integer('memory_mib')}Mi",
        **({GPU: str(gpus)} if gpus else {}),
    }


def _affinity(row: CsvRow) -> JsonObject:
    models = [model for model in row.text("gpu_spec").split("|") if model]
    if not models:
        return {}
    expression = {"key": MODEL_LABEL, "operator": "In", "values": models}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }
