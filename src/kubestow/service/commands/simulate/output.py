"""What `kubestow simulate` prints: tables of pods and nodes, and a summary."""

import sys
from collections import Counter
from typing import Final

from rich.console import Console

from kubestow.plural import counted, some_of
from kubestow.redaction import printable
from kubestow.service.commands.simulate.run_output import print_refusals
from kubestow.service.formats import OutputFormat
from kubestow.service.output import duration_text, print_data, stdout
from kubestow.simulator.simulation import NodeOutcome, PodOutcome, SimulationResult
from kubestow.table import Table

_MESSAGES_SHOWN: Final = 5
_NAMES_SHOWN: Final = 5


def print_result(result: SimulationResult, output: OutputFormat, *, has_headers: bool) -> None:
    """Print in the format asked for; without headers there are rows only, for scripts."""
    match output:
        case OutputFormat.JSON | OutputFormat.YAML:
            print_data(result, output)
        case OutputFormat.NAME:
            for pod in _in_order(result):
                sys.stdout.write(f"pod/{pod.name}\n")
        case OutputFormat.TABLE | OutputFormat.WIDE:
            _print_tables(result, is_wide=output is OutputFormat.WIDE, has_headers=has_headers)


def _print_tables(result: SimulationResult, *, is_wide: bool, has_headers: bool) -> None:
    if result.pods:
        table = _pod_table(_in_order(result), is_wide=is_wide)
        table.print(has_header=has_headers, is_cut=not is_wide)
    if is_wide and result.nodes:
        sys.stdout.write("\n")
        _node_table(result.nodes).print(has_header=has_headers)
    if has_headers:
        sys.stdout.write("\n" if result.pods else "")
        print_summary(stdout(), result)


def _in_order(result: SimulationResult) -> list[PodOutcome]:
    """Pods that wait come first."""
    return sorted(result.pods, key=lambda pod: pod.outcome == "Scheduled")


def print_summary(console: Console, result: SimulationResult) -> None:
    scheduled, pending, foreign = result.scheduled, result.pending, result.foreign
    parts = [
        f"{len(scheduled)} of {counted(len(result.pods) - len(foreign), 'pod')} scheduled on "
        f"{len({pod.node for pod in scheduled})} of {counted(len(result.nodes), 'node')}",
        f"{len(pending)} pending",
    ]
    if foreign:
        parts.append(f"{len(foreign)} for other schedulers")
    if result.running_count:
        runs = "runs" if result.running_count == 1 else "run"
        parts.append(f"{counted(result.running_count, 'pod')} {runs} already")
    parts.append(f"{result.virtual_duration_s:g} s of virtual time")
    console.print(", ".join(parts))
    if result.evicted:
        evicted = counted(len(result.evicted), "running pod")
        console.print(f"{evicted} evicted: {some_of(result.evicted, _NAMES_SHOWN)}")
    messages = Counter(pod.message or pod.reason for pod in (*pending, *foreign))
    for message, count in messages.most_common(_MESSAGES_SHOWN):
        pods = "pod waits" if count == 1 else "pods wait"
        text = printable(message or "not tried yet")
        console.print(f"  {count} {pods}: {text}", markup=False)
    if result.on_missing_nodes:
        are = "is" if len(result.on_missing_nodes) == 1 else "are"
        pods = counted(len(result.on_missing_nodes), "pod")
        names = some_of(result.on_missing_nodes, _NAMES_SHOWN)
        console.print(f"{pods} {are} on nodes that do not exist: {names}")
    if not result.pods and result.running_count:
        console.print("No pod waits for a node; --reschedule places the pods that run again.")
    print_refusals(console, result.refused_pods, result.refusals)
    if result.failed_attempts:
        console.print(f"{counted(result.failed_attempts, 'attempt')} failed with an error.")
    if not result.has_settled:
        console.print("The time limit ended the run: pods were still being retried (--limit).")


def _pod_table(pods: list[PodOutcome], *, is_wide: bool) -> Table:
    wide = ("PRIORITY", "ATTEMPTS", "AFTER", "NOMINATED") if is_wide else ()
    table = Table("NAMESPACE", "NAME", "OUTCOME", "NODE", *wide, "MESSAGE", right=wide[:3], keys=2)
    for pod in pods:
        after_s = pod.scheduled_after_s
        more = (
            str(pod.priority),
            str(pod.attempts),
            "" if after_s is None else duration_text(after_s),
            pod.nominated_node,
        )
        message = " ".join((pod.message or pod.reason).split())
        table.add(
            pod.namespace, pod.name, pod.outcome, pod.node, *(more if is_wide else ()), message
        )
    return table


def _node_table(nodes: list[NodeOutcome]) -> Table:
    right = ("PODS", "CPU", "CPU%", "MEMORY", "MEMORY%")
    table = Table("NODE", "ZONE", *right, right=right)
    for node in nodes:
        cpu = node.cpu_milli_requested, node.cpu_milli_allocatable
        memory = node.memory_bytes_requested, node.memory_bytes_allocatable
        table.add(
            node.name,
            node.zone,
            f"{node.pods}/{node.allowed_pods}",
            f"{cpu[0] / 1000:.1f}/{cpu[1] / 1000:.1f}",
            _percent(*cpu),
            f"{memory[0] / 2**30:.1f}/{memory[1] / 2**30:.1f}Gi",
            _percent(*memory),
        )
    return table


def _percent(used: int, total: int) -> str:
    return f"{100 * used // total}%" if total else "-"
