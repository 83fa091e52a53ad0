"""`kubestow demo --serve`: the embedded cluster as a server that kubectl can use, until Ctrl-C.

At any end (Ctrl-C, a signal, a closed terminal, the time of --for) the kubeconfig is put in
order and the cluster saved if asked for. Nothing is started before all arguments are known to be
usable.
"""

import asyncio
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console
from rich.markup import escape

from kubestow.api.files import Document, load_documents
from kubestow.apiserver.http.kubeconfig_file import KubeconfigFile
from kubestow.clock import SystemClock
from kubestow.cluster.resources import NODES
from kubestow.engine.decision import Decision
from kubestow.plugins.loading import LoadedPlugins
from kubestow.queue import QueuedPod
from kubestow.service.commands.scheduler_config import load_scheduler_config
from kubestow.service.logging import warnings_on_stderr
from kubestow.service.output import stdout
from kubestow.simulator.cluster_file import LoadReport, require_savable, save_cluster
from kubestow.simulator.served import ServedCluster, ServedOptions

# Of pods that wait, the last message is kept for this many, to print only what is new.
_MESSAGES_MAX: Final = 4_096
# Added to the number of the signal that ended the process, as shells do.
_ENDED_BY_SIGNAL: Final = 128


class ServeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    options: ServedOptions
    kubeconfig_path: Path | None = None
    config_path: Path | None = None
    load_paths: Sequence[Path] = ()
    save_path: Path | None = None
    for_s: float | None = None


def serve_demo(request: ServeRequest) -> int:
    """Serve until interrupted, or for some seconds; return the exit code."""
    with tempfile.TemporaryDirectory(prefix="kubestow-demo-") as folder, warnings_on_stderr():
        path = request.kubeconfig_path or Path(folder, "kubeconfig")
        KubeconfigFile(path)
        if request.save_path is not None:
            require_savable(request.save_path)
        plugins = load_scheduler_config(request.config_path)
        documents = load_documents(request.load_paths)
        return asyncio.run(_serve(_Output(stdout()), request, path, plugins, documents))


async def _serve(
    output: "_Output",
    request: ServeRequest,
    path: Path,
    plugins: LoadedPlugins,
    documents: Sequence[Document],
) -> int:
    ended = asyncio.Event()
    signals = _end_on_signals(ended)
    cluster = ServedCluster(
        request.options,
        SystemClock(),
        config=plugins.config,
        registry=plugins.registry,
        listeners=[_feed(output)],
        documents=documents,
    )
    async with cluster.serving(path):
        _greet(output, request, cluster)
        with suppress(TimeoutError):
            async with asyncio.timeout(request.for_s):
                await ended.wait()
    # Here, not in the command: the store is at rest, and a closed terminal may end the process.
    if request.save_path is not None:
        report = save_cluster(cluster.store, request.save_path)
        output.print(f"\nSaved {report.object_count} objects to {escape(str(request.save_path))}.")
        if report.secret_count:
            output.print(f"The data of {_count(report.secret_count, 'secret')} is left out.")
    output.print("\nThe cluster and everything in it is deleted.")
    return _ENDED_BY_SIGNAL + signals[0] if signals else 0


def _end_on_signals(ended: asyncio.Event) -> list[signal.Signals]:
    """Set the event at the first signal that asks to end; the signals are in the list returned."""
    received: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        received.append(number)
        ended.set()

    numbers = [signal.SIGINT, signal.SIGTERM]
    # A process started by nohup ignores the end of its terminal.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    for number in numbers:
        with suppress(NotImplementedError):  # Windows: Ctrl-C then ends the loop itself.
            asyncio.get_running_loop().add_signal_handler(number, end, number)
    return received


def _greet(output: "_Output", request: ServeRequest, cluster: ServedCluster) -> None:
    assert cluster.kubeconfig is not None
    path = shlex.quote(str(cluster.kubeconfig.path))
    nodes = _count(len(list(cluster.store.objects_of(NODES))), "node")
    output.print(f"An embedded cluster of {nodes} answers at [bold]{cluster.url}[/bold]\n")
    if request.load_paths:
        _print_loaded(output, cluster.loaded)
    output.print(f"  export KUBECONFIG={escape(path)}")
    output.print("  kubectl get nodes")
    output.print("  kubectl create deployment web --image=nginx --replicas=5\n")
    if cluster.kubeconfig.is_merged:
        output.print(
            f'The kubeconfig has the context "{cluster.context}" until the end, and it is the'
            " current one. Comments in the file come back then, unless another program writes it.\n"
        )
    if request.options.has_scheduler:
        output.print("Pods are scheduled, and running them is simulated. Ctrl-C ends it.\n")
    else:
        output.print("Pods wait for a scheduler, such as this one. Ctrl-C ends the cluster.\n")
        output.print(f"  kubestow run --kubeconfig {escape(path)} --leader-elect=false\n")


def _print_loaded(output: "_Output", report: LoadReport) -> None:
    output.print(f"Loaded {_count(report.object_count, 'object')}.")
    if report.ignored:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(report.ignored.items()))
        output.print(f"Ignored, because the server does not serve the kind: {escape(kinds)}.")
    if report.orphan_count:
        references = _count(report.orphan_count, "owner reference")
        output.print(f"Left out {references} to objects that are not in the files.")
    output.print("")


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _feed(output: "_Output") -> Callable[[Decision, QueuedPod], None]:
    """Prints decisions; of a pod that waits, only messages that differ from the last."""
    last_messages: dict[str, str] = {}

    def note(decision: Decision, _queued_pod: QueuedPod) -> None:
        pod = decision.pod
        if decision.is_scheduled:
            last_messages.pop(pod.uid, None)
            output.print(f"[green]{pod.key}[/green] → {decision.node_name}")
        elif last_messages.get(pod.uid) != decision.message:
            if len(last_messages) >= _MESSAGES_MAX:
                last_messages.clear()
            last_messages[pod.uid] = decision.message
            output.print(f"[yellow]{pod.key}[/yellow] waits: {escape(decision.message)}")

    return note


class _Output:
    """Prints as long as there is a reader: a closed terminal or pipe does not end the cluster."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._is_closed = False

    def print(self, text: str) -> None:
        if self._is_closed:
            return
        try:
            # Commands are pasted from here: lines are not broken.
            self._console.print(text, soft_wrap=True)
        except (OSError, SystemExit):
            # rich exits by itself when a pipe is closed.
            self._is_closed = True
            # Python writes the rest of its buffer when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
