"""`kubestow demo --serve`: the embedded cluster as a server that kubectl can use, until Ctrl-C.

At any end (Ctrl-C, a signal, a closed terminal, the time of --for) the kubeconfig is put in
order and the cluster saved if asked for. Nothing is started before all arguments are known to be
usable.
"""

import asyncio
import shlex
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Final

import msgspec
from rich.markup import escape

from kubestow.api.files import Document, load_documents
from kubestow.apiserver.http.kubeconfig_file import KubeconfigFile
from kubestow.clock import SystemClock
from kubestow.cluster.resources import NODES
from kubestow.engine.decision import Decision
from kubestow.explain.history import AttemptHistory
from kubestow.plugins.loading import LoadedPlugins
from kubestow.plural import counted
from kubestow.queue import QueuedPod
from kubestow.service.commands.demo.log import RareLines
from kubestow.service.commands.demo.output import (
    Output,
    end_on_signals,
    exit_code,
)
from kubestow.service.commands.demo.parts import announce_page, demo_page_parts, save_if_asked
from kubestow.service.commands.scheduler_config import load_scheduler_config
from kubestow.service.logging import warnings_on_stderr
from kubestow.service.loops import LoopThread
from kubestow.service.output import stdout
from kubestow.service.page import OpenPage, local_page, page_metrics
from kubestow.simulator.cluster_file import LoadReport
from kubestow.simulator.served import ServedCluster, ServedOptions

# Of pods that wait, the last message is kept for this many, to print only what is new.
_MESSAGES_MAX: Final = 4_096


class ServeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    options: ServedOptions
    kubeconfig_path: Path | None = None
    config_path: Path | None = None
    load_paths: Sequence[Path] = ()
    save_path: Path | None = None
    for_s: float | None = None
    # The port of the page; 0 takes a free one.
    page_port: int = 0
    opens_page: bool = False


def serve_demo(request: ServeRequest) -> int:
    """Serve until interrupted, or for some seconds; return the exit code."""
    output = Output(stdout())
    with (
        tempfile.TemporaryDirectory(prefix="kubestow-demo-") as folder,
        warnings_on_stderr(RareLines(output.note_lines)),
    ):
        path = request.kubeconfig_path or Path(folder, "kubeconfig")
        KubeconfigFile(path)
        plugins = load_scheduler_config(request.config_path, gates=request.options.gates)
        documents = load_documents(request.load_paths)
        return asyncio.run(_serve(output, request, path, plugins, documents))


async def _serve(
    output: Output,
    request: ServeRequest,
    path: Path,
    plugins: LoadedPlugins,
    documents: Sequence[Document],
) -> int:
    ended = asyncio.Event()
    signals = end_on_signals(ended.set)
    clock, gates = SystemClock(), request.options.gates
    history = AttemptHistory(clock)
    cluster = ServedCluster(
        request.options,
        clock,
        config=plugins.config,
        registry=plugins.registry,
        listeners=[_feed(output), history.decided],
        documents=documents,
        metrics=page_metrics(gates),
    )
    async with cluster.serving(path), _page(request, cluster, plugins, history) as page:
        _greet(output, request, cluster)
        if page is not None:
            announce_page(output, page.address, opens=request.opens_page)
        with suppress(TimeoutError):
            async with asyncio.timeout(request.for_s):
                await ended.wait()
    # Here, not in the command: the store is at rest, and a closed terminal may end the process.
    save_if_asked(output, cluster, request.save_path)
    output.print("\nThe cluster and everything in it is deleted.")
    return exit_code(signals)


@asynccontextmanager
async def _page(
    request: ServeRequest,
    cluster: ServedCluster,
    plugins: LoadedPlugins,
    history: AttemptHistory,
) -> AsyncGenerator[OpenPage | None, None]:
    """The page, if there is a scheduler to show."""
    if cluster.embedded is None:
        yield None
        return
    parts = demo_page_parts(cluster, plugins, request.options.gates, history)
    with closing(LoopThread("page")) as thread:
        async with local_page(parts, thread, port=request.page_port) as page:
            yield page


def _greet(output: Output, request: ServeRequest, cluster: ServedCluster) -> None:
    assert cluster.kubeconfig is not None
    path = shlex.quote(str(cluster.kubeconfig.path))
    nodes = counted(len(list(cluster.store.objects_of(NODES))), "node")
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


def _print_loaded(output: Output, report: LoadReport) -> None:
    output.print(f"Loaded {counted(report.object_count, 'object')}.")
    if report.ignored:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(report.ignored.items()))
        output.print(f"Ignored, because the server does not serve the kind: {escape(kinds)}.")
    if report.orphan_count:
        references = counted(report.orphan_count, "owner reference")
        output.print(f"Left out {references} to objects that are not in the files.")
    output.print("")


def _feed(output: Output) -> Callable[[Decision, QueuedPod], None]:
    """Prints decisions; of a pod that waits, only messages that differ from the last."""
    last_messages: dict[str, str] = {}

    def note(decision: Decision, _queued_pod: QueuedPod) -> None:
        pod = decision.pod
        if decision.is_scheduled:
            last_messages.pop(pod.uid, None)
            output.print(f"[green]{pod.key}[/green] → {decision.node_name}", is_wrapped=True)
        elif last_messages.get(pod.uid) != decision.message:
            if len(last_messages) >= _MESSAGES_MAX:
                last_messages.clear()
            last_messages[pod.uid] = decision.message
            message = escape(decision.message)
            output.print(f"[yellow]{pod.key}[/yellow] waits: {message}", is_wrapped=True)

    return note
