"""The cluster of the trace `openb`, half full, beside first-fit-decreasing as a bound.

    python -m tools.rebalance.openb --trace FOLDER [--write]

The pods of the trace are placed in a random order, then pods leave at random until half of all GPUs
are requested: what is left is as scattered as in a cluster after a scale-down. Pods with a share of
a GPU have one of their own, as in `kubestow simulate --trace openb`.

First-fit-decreasing places all pods again on an empty cluster, the largest first, each on the first
node it fits on. It evicts every pod at once and keeps to no scores, so no plan is expected to reach
it. `--write` puts the table into the guide.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.api.resources import CPU, MEMORY, amount_of
from kubestow.arrays import IntArray
from kubestow.clock import process_cpu_s
from kubestow.cluster.documents import as_object, objects_in, value_at
from kubestow.plural import counted
from kubestow.simulator.capacity.placing import PlacingCluster, PlacingSetup
from kubestow.simulator.rebalance import RebalanceOptions, RebalancePlan, make_plan, read_goal
from kubestow.simulator.rebalance.ground import standing_ground
from kubestow.simulator.traces.openb import MODEL_LABEL, openb_scenario
from kubestow.simulator.traces.parts import GPU
from kubestow.simulator.virtual_time import run_in_virtual_time

NODES_FILE: Final = "openb_node_list_all_node.csv"
PODS_FILE: Final = "openb_pod_list_default.csv"
RESOURCES: Final = (GPU, CPU, MEMORY)
# Of all GPUs, requested by the pods that are left.
SHARE: Final = 0.5
GOALS: Final = ("empty-nodes", f"defragment={GPU}:8")
MOVES: Final = (50, 200, 1_000, 3_000)
TIME_LIMIT_S: Final = 1_200.0
GUIDE: Final = Path(__file__).parents[2] / "docs/guides/rebalance.md"
BEGIN: Final = "<!-- made by: python -m tools.rebalance.openb --trace FOLDER --write -->\n"
END: Final = "<!-- end -->\n"


class OpenbCluster(NamedTuple):
    """Documents, and the same as numbers: int64[node or pod, resource] of `RESOURCES`."""

    documents: Sequence[Document]
    has: IntArray
    models: Sequence[str]
    requests: IntArray
    # The models that each pod may be on; empty: any.
    allowed: Sequence[frozenset[str]]


def half_full(folder: Path, seed: int) -> OpenbCluster:
    """The cluster after half of it has left."""
    rng = np.random.default_rng(seed)
    scenario = openb_scenario(folder / NODES_FILE, folder / PODS_FILE)
    arrived = [arrival.document for source in scenario.arrivals for arrival in source(seed)]
    order: list[int] = rng.permutation(len(arrived)).tolist()
    waiting = [Document(_owned(arrived[index]), "trace") for index in order]
    placed = run_in_virtual_time(_placed([*scenario.documents, *waiting]))
    nodes = [one for one in placed if one.raw["kind"] == "Node"]
    pods = [one for one in placed if value_at(one.raw, "spec", "nodeName")]
    left = list(_left(nodes, pods, rng))
    has, models = _amounts(nodes, []), [_model(one.raw) for one in nodes]
    return OpenbCluster(
        [*nodes, *left], has, models, _amounts(nodes, left), [_allowed(one.raw) for one in left]
    )


async def _placed(documents: Sequence[Document]) -> list[Document]:
    async with PlacingCluster(documents, PlacingSetup()).running() as placing:
        return placing.documents()


def _owned(pod: JsonObject) -> JsonObject:
    """A pod of the trace as one that a controller would replace."""
    name = value_at(pod, "metadata", "name")
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"set-{name}"}
    metadata = {**pod["metadata"], "ownerReferences": [{**reference, "controller": True}]}
    return {**pod, "metadata": metadata}


def _left(
    nodes: Sequence[Document], pods: Sequence[Document], rng: np.random.Generator
) -> Iterator[Document]:
    """Pods in a random order, as long as they request at most the share of all GPUs."""
    limit = SHARE * _amounts(nodes, [])[:, 0].sum()
    gpus = _amounts(nodes, pods)[:, 0]
    taken = 0
    for index in rng.permutation(len(pods)).tolist():
        taken += gpus.item(index)
        if taken > limit:
            return
        yield pods[index]


def _amounts(nodes: Sequence[Document], pods: Sequence[Document]) -> IntArray:
    """What pods request, in the order given; of nodes if there are none."""
    infos = standing_ground([*nodes, *pods], PlacingSetup()).cluster.refresh().node_infos
    if not pods:
        by_name = {info.name: info.allocatable for info in infos}
    else:
        by_name = {pod.name: pod.accounted.requested for info in infos for pod in info.pods}
    documents = pods or nodes
    return np.array(
        [
            [amount_of(name, by_name[one.raw["metadata"]["name"]]) for name in RESOURCES]
            for one in documents
        ],
        np.int64,
    )


def _model(node: JsonObject) -> str:
    return as_object(value_at(node, "metadata", "labels")).get(MODEL_LABEL, "")


def _allowed(pod: JsonObject) -> frozenset[str]:
    path = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = objects_in(value_at(pod, "spec", *path, "nodeSelectorTerms"))
    return frozenset(
        value
        for term in terms
        for expression in objects_in(term.get("matchExpressions"))
        for value in expression["values"]
    )


# --- First-fit-decreasing -----------------------------------------------------------------------


def first_fit_decreasing(cluster: OpenbCluster, *, spares_large: bool) -> IntArray:
    """int64[node, resource]: what is requested on each node after all pods were placed again.

    Nodes with many GPUs come first; with `spares_large` those with few.
    """
    taken: IntArray = np.zeros_like(cluster.has)
    has, sizes, models = cluster.has, cluster.requests, np.array(cluster.models)
    order = np.lexsort((-has[:, 1], has[:, 0] if spares_large else -has[:, 0]))
    largest_first: list[int] = np.lexsort((-sizes[:, 2], -sizes[:, 1], -sizes[:, 0])).tolist()
    for pod in largest_first:
        size, allowed = sizes[pod], list(cluster.allowed[pod])
        fits = np.all(taken + size <= has, axis=1) & (np.isin(models, allowed) | (not allowed))
        found = order[fits[order]]
        if not len(found):
            raise SystemExit("first-fit-decreasing does not place all pods")
        taken[found[0]] += size
    return taken


def bound_of(cluster: OpenbCluster, goal: str) -> float:
    """The figure of the goal after first-fit-decreasing."""
    if goal == "empty-nodes":
        taken = first_fit_decreasing(cluster, spares_large=False)
        return float(np.count_nonzero(taken.any(axis=1)))
    taken = first_fit_decreasing(cluster, spares_large=True)
    amount = int(goal.rpartition(":")[2])
    return float(((cluster.has - taken)[:, 0] // amount).sum())


# --- The table ----------------------------------------------------------------------------------


class Measured(NamedTuple):
    plan: RebalancePlan
    max_moves: int
    bound: float
    cpu_s: float


def measured(cluster: OpenbCluster) -> Iterator[Measured]:
    for goal in GOALS:
        bound = bound_of(cluster, goal)
        for max_moves in MOVES:
            options = RebalanceOptions(max_moves=max_moves, time_limit_s=TIME_LIMIT_S)
            started_s = process_cpu_s()
            plan = make_plan(cluster.documents, read_goal(goal), options)
            yield Measured(plan, max_moves, bound, process_cpu_s() - started_s)


def table_of(cluster: OpenbCluster, rows: Sequence[Measured], seed: int) -> str:
    pods = len(cluster.requests)
    gpus, requested = int(cluster.has[:, 0].sum()), int(cluster.requests[:, 0].sum())
    lines = [
        f"{counted(len(cluster.has), 'node')}, {counted(pods, 'pod')}, {requested:,} of {gpus:,} "
        f"GPUs requested (seed {seed}):\n",
        "| `--goal` | `--max-moves` | before | after | evictions | first-fit-decreasing "
        "| CPU time |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for plan, max_moves, bound, cpu_s in rows:
        lines.append(
            f"| `{plan.goal}` | {max_moves:,} | {plan.figure_before:,.0f} "
            f"| {plan.figure_after:,.0f} | {plan.moves:,} | {bound:,.0f} | {cpu_s:.1f} s |"
        )
    return "\n".join(lines) + "\n"


def write(table: str) -> None:
    text = GUIDE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    GUIDE.write_text(f"{before}{BEGIN}{table}{END}{after}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.rebalance.openb")
    parser.add_argument("--trace", type=Path, required=True, help="the folder of the CSV files")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="put the table into the guide")
    given = parser.parse_args()
    cluster = half_full(given.trace, given.seed)
    rows: list[Measured] = []
    for row in measured(cluster):
        rows.append(row)
        print(
            f"{row.plan.goal}, {row.max_moves} moves: {row.plan.figure_before:g} to "
            f"{row.plan.figure_after:g} with {row.plan.moves}, bound {row.bound:g}, "
            f"{row.cpu_s:.1f} s {row.plan.stopped}",
            file=sys.stderr,
        )
    table = table_of(cluster, rows, given.seed)
    print(table)
    if given.write:
        write(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
