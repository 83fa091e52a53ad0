"""`kubestow simulate`: place a workload on a cluster, both given as files, in virtual time."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Protocol

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kubestow.api.files import load_documents
from kubestow.api.meta import JsonObject
from kubestow.engine.factory import SchedulerFactory
from kubestow.errors import InputError
from kubestow.service.commands.compatibility import AlgorithmOptions, Compatibility
from kubestow.service.commands.scheduler_config import load_scheduler_config
from kubestow.service.output import OutputFormat, print_data, progress_bar, stdout
from kubestow.simulator.simulation import (
    LIMIT_S,
    NodeOutcome,
    PodOutcome,
    Simulation,
    SimulationResult,
)
from kubestow.simulator.virtual_time import run_in_virtual_time

_ROWS_MAX = 40
_OLDER = "Older schedulers"


def simulate(
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="Cluster and workload: YAML or JSON, a directory, or - for standard input. "
            "May be repeated.",
        ),
    ] = None,
    output: Annotated[OutputFormat, typer.Option("--output", "-o", help="How to print.")] = (
        OutputFormat.TABLE
    ),
    limit: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Stop after this much virtual time.")
    ] = LIMIT_S,
    config_file: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Configuration of the scheduler: a KubeSchedulerConfiguration v1, YAML or JSON.",
        ),
    ] = None,
    percentage: Annotated[
        int | None,
        typer.Option(
            "--percentage-of-nodes-to-score",
            min=0,
            max=100,
            help="How many percent of the nodes are enough to choose from; 0 adapts to the size. "
            "Overrides the configuration.",
        ),
    ] = None,
    fail_on_pending: Annotated[
        bool, typer.Option(help="Exit with code 1 when pods stay pending.")
    ] = False,
    compatibility: Annotated[
        Compatibility,
        typer.Option(
            help="Decide as this version of kube-scheduler. v1.17 and v1.20 have today's plugins, "
            "with the queue, the cache and the choice among equals of their time.",
            rich_help_panel=_OLDER,
        ),
    ] = Compatibility.TODAY,
    algorithm_provider: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="DefaultProvider or ClusterAutoscalerProvider.",
            rich_help_panel=_OLDER,
        ),
    ] = AlgorithmOptions().algorithm_provider,
    policy_config_file: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="A Policy, YAML or JSON: predicates and priorities.",
            rich_help_panel=_OLDER,
        ),
    ] = "",
    policy_configmap: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The ConfigMap, among the files, that has the Policy as policy.cfg.",
            rich_help_panel=_OLDER,
        ),
    ] = "",
    policy_configmap_namespace: Annotated[
        str, typer.Option(metavar="NAMESPACE", rich_help_panel=_OLDER)
    ] = AlgorithmOptions().policy_configmap_namespace,
    use_legacy_policy_config: Annotated[
        bool,
        typer.Option(
            "--use-legacy-policy-config",
            help="Use the Policy file even if a ConfigMap is named.",
            rich_help_panel=_OLDER,
        ),
    ] = False,
    scheduler_name: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="spec.schedulerName of the pods to place.", rich_help_panel=_OLDER
        ),
    ] = AlgorithmOptions().scheduler_name,
    hard_pod_affinity_symmetric_weight: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Weight of required affinity of pods on the node to the pod, 1 to 100; a Policy "
            "overrides it.",
            rich_help_panel=_OLDER,
        ),
    ] = AlgorithmOptions().hard_pod_affinity_symmetric_weight,
) -> None:
    """Place a workload on a cluster and print where each pod goes, or why it waits.

    Nodes, pods and everything else come from files, such as the output of
    `kubectl get nodes,pods,pvc -A -o json`. Pods without a node are placed; Deployments,
    StatefulSets, Jobs and other owners without pods in the input are replaced by the pods they
    would create.

    Example: kubestow simulate -f cluster.yaml -f workload/ -o wide
    """
    if not files:
        raise InputError("nothing to simulate: name files with -f, for example -f cluster.yaml")
    documents = [document.raw for document in load_documents(files)]
    if not documents:
        raise InputError(f"no objects in {', '.join(map(str, files))}")
    options = AlgorithmOptions(
        algorithm_provider=algorithm_provider,
        policy_config_file=policy_config_file,
        policy_configmap=policy_configmap,
        policy_configmap_namespace=policy_configmap_namespace,
        use_legacy_policy_config=use_legacy_policy_config,
        scheduler_name=scheduler_name,
        hard_pod_affinity_symmetric_weight=hard_pod_affinity_symmetric_weight,
    )
    make: _MakeSimulation
    if compatibility is Compatibility.V1_9:
        if config_file is not None or percentage is not None:
            raise InputError(
                "--config and --percentage-of-nodes-to-score are newer than v1.9; "
                "give a Policy with --policy-config-file"
            )
        make = _of_v1_9(documents, options)
    else:
        if options != AlgorithmOptions():
            raise InputError("flags of older schedulers need --compatibility v1.9")
        make = _with_plugins(documents, config_file, percentage, _factory_of(compatibility))
    with progress_bar("Placing pods") as progress:
        task = progress.add_task("", total=None)

        def note(decision: _Decision) -> None:
            progress.advance(task, 1 if decision.is_scheduled else 0)

        async def run() -> SimulationResult:
            simulation = make(note)
            progress.update(task, total=simulation.waiting_count)
            return await simulation.run(limit_s=limit)

        result = run_in_virtual_time(run())
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        print_data(result, output)
    else:
        print_result(result, is_wide=output is OutputFormat.WIDE)
    raise typer.Exit(1 if fail_on_pending and result.pending else 0)


class _Decision(Protocol):
    @property
    def is_scheduled(self) -> bool: ...


class _Simulation(Protocol):
    @property
    def waiting_count(self) -> int: ...

    async def run(self, *, limit_s: float) -> SimulationResult: ...


# Makes a simulation that calls a listener with every decision; called in the loop it runs in.
_MakeSimulation = Callable[[Callable[[_Decision], None]], _Simulation]


def _with_plugins(
    documents: Sequence[JsonObject],
    config_file: Path | None,
    percentage: int | None,
    factory: type[SchedulerFactory],
) -> _MakeSimulation:
    config, registry = load_scheduler_config(config_file)
    if percentage is not None:
        config = msgspec.structs.replace(config, percentage_of_nodes_to_score=percentage)
    return lambda note: Simulation(
        documents, config, registry=registry, on_decision=note, factory=factory
    )


def _factory_of(compatibility: Compatibility) -> type[SchedulerFactory]:
    if compatibility is Compatibility.TODAY:
        return SchedulerFactory
    # Imported here, like all legacy code: only when an older version is to run.
    from kubestow.engine.legacy.factory import FACTORIES

    return FACTORIES[compatibility]


def _of_v1_9(documents: Sequence[JsonObject], options: AlgorithmOptions) -> _MakeSimulation:
    from kubestow.service.commands.legacy import v1_9_simulation

    return v1_9_simulation(documents, options)


def print_result(result: SimulationResult, *, is_wide: bool) -> None:
    """Tables of pods and nodes, and a summary."""
    console = stdout()
    pods = result.pods if is_wide else [*result.pending, *result.scheduled][:_ROWS_MAX]
    if pods:
        console.print(_pod_table(pods, is_wide=is_wide))
    if len(pods) < len(result.pods):
        console.print(f"… and {len(result.pods) - len(pods)} more pods; -o wide shows all\n")
    if is_wide:
        console.print(_node_table(result.nodes))
    print_summary(console, result)


def print_summary(console: Console, result: SimulationResult) -> None:
    scheduled, pending = result.scheduled, result.pending
    console.print(
        f"{len(scheduled)} of {len(result.pods)} pods scheduled on {_used_node_count(scheduled)} "
        f"of {len(result.nodes)} nodes, {len(pending)} pending, "
        f"{result.virtual_duration_s:g} s of virtual time"
    )
    if result.evicted:
        console.print(f"{len(result.evicted)} running pods evicted: {_some(result.evicted)}")
    for message, count in Counter(pod.message or pod.reason for pod in pending).most_common(5):
        pods = "pod waits" if count == 1 else "pods wait"
        console.print(f"  {count} {pods}: {escape(message or 'not tried yet')}")
    if not result.has_settled:
        console.print("The time limit ended the run: pods were still being retried (--limit).")


def _pod_table(pods: list[PodOutcome], *, is_wide: bool) -> Table:
    table = Table(header_style="bold", box=None, pad_edge=False)
    for column in ("NAMESPACE", "NAME", "OUTCOME", "NODE"):
        table.add_column(column, no_wrap=True)
    if is_wide:
        for column in ("PRIORITY", "ATTEMPTS", "AFTER"):
            table.add_column(column, justify="right")
        table.add_column("NOMINATED", no_wrap=True)
    table.add_column("MESSAGE", overflow="fold")
    for pod in pods:
        wide = (
            [str(pod.priority), str(pod.attempts), _seconds(pod), pod.nominated_node]
            if is_wide
            else []
        )
        table.add_row(
            pod.namespace, pod.name, pod.outcome, pod.node, *wide, escape(pod.message or pod.reason)
        )
    return table


def _node_table(nodes: list[NodeOutcome]) -> Table:
    table = Table(header_style="bold", box=None, pad_edge=False)
    table.add_column("NODE", no_wrap=True)
    table.add_column("ZONE", no_wrap=True)
    for column in ("PODS", "CPU", "MEMORY"):
        table.add_column(column, justify="right", no_wrap=True)
    for node in nodes:
        table.add_row(
            node.name,
            node.zone,
            f"{node.pods}/{node.allowed_pods}",
            _share(node.cpu_milli_requested, node.cpu_milli_allocatable, 1000, ""),
            _share(node.memory_bytes_requested, node.memory_bytes_allocatable, 2**30, "Gi"),
        )
    return table


def _share(used: int, total: int, unit: int, suffix: str) -> str:
    percent = f"{100 * used // total}%" if total else "-"
    return f"{used / unit:.1f}/{total / unit:.1f}{suffix} {percent:>4}"


def _seconds(pod: PodOutcome) -> str:
    return f"{pod.scheduled_after_s:.1f}s" if pod.scheduled_after_s is not None else ""


def _used_node_count(scheduled: list[PodOutcome]) -> int:
    return len({pod.node for pod in scheduled})


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
