"""`kubestow demo --serve`: the embedded cluster as a server that kubectl can use, until Ctrl-C."""

import asyncio
import signal
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from kubestow.clock import SystemClock
from kubestow.engine.decision import Decision
from kubestow.errors import InputError
from kubestow.queue import QueuedPod
from kubestow.simulator.served import ServedCluster, ServedOptions

_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve_demo(
    console: Console, options: ServedOptions, *, kubeconfig_path: Path | None, for_s: float | None
) -> None:
    """Serve until interrupted, or for some seconds."""
    try:
        with tempfile.TemporaryDirectory(prefix="kubestow-demo-") as folder:
            path = kubeconfig_path or Path(folder, "kubeconfig")
            asyncio.run(_serve(console, options, path, for_s))
    except OSError as error:
        raise InputError(
            f'cannot serve on "{options.host}:{options.port}": {error.strerror or error};'
            " choose another port, or 0 for a free one"
        ) from error


async def _serve(console: Console, options: ServedOptions, path: Path, for_s: float | None) -> None:
    is_over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _ENDING_SIGNALS:
        with suppress(NotImplementedError):  # Windows: Ctrl-C then ends the loop itself.
            loop.add_signal_handler(number, is_over.set)
    feed = _feed(console)
    cluster = ServedCluster(options, SystemClock(), listeners=[feed])
    async with cluster.serving(path):
        _greet(console, options, cluster.url, path)
        with suppress(TimeoutError):
            async with asyncio.timeout(for_s):
                await is_over.wait()
    console.print("\nThe cluster and everything in it is deleted.")


def _greet(console: Console, options: ServedOptions, url: str, path: Path) -> None:
    nodes = "1 node" if options.nodes == 1 else f"{options.nodes} nodes"
    console.print(f"An embedded cluster of {nodes} answers at [bold]{url}[/bold]\n")
    console.print(f"  export KUBECONFIG={path}")
    console.print("  kubectl get nodes")
    console.print("  kubectl create deployment web --image=nginx --replicas=5\n")
    if options.has_scheduler:
        console.print("Pods are scheduled, and running them is simulated. Ctrl-C ends it.\n")
    else:
        console.print("Pods wait for a scheduler, such as this one. Ctrl-C ends the cluster.\n")
        console.print(f"  kubestow run --kubeconfig {path} --leader-elect=false\n")


def _feed(console: Console) -> Callable[[Decision, QueuedPod], None]:
    """Prints decisions; of a pod that waits, only messages that differ from the last."""
    last_messages: dict[str, str] = {}

    def note(decision: Decision, _queued_pod: QueuedPod) -> None:
        pod = decision.pod
        if decision.is_scheduled:
            last_messages.pop(pod.uid, None)
            console.print(f"[green]{pod.key}[/green] → {decision.node_name}")
        elif last_messages.get(pod.uid) != decision.message:
            last_messages[pod.uid] = decision.message
            console.print(f"[yellow]{pod.key}[/yellow] waits: {escape(decision.message)}")

    return note
