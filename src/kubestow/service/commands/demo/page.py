"""`kubestow demo`: an embedded cluster with a living workload, and its page, until Ctrl-C.

The cluster's time can be paused and runs at a speed of its own; the page is served in real time, in
another thread.
"""

import asyncio
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import cast

import msgspec

from kubestow.api.files import Document, load_documents
from kubestow.api.meta import JsonObject
from kubestow.clock import SystemClock
from kubestow.cluster.resources import NODES
from kubestow.explain.history import AttemptHistory
from kubestow.plugins.loading import LoadedPlugins
from kubestow.plural import counted
from kubestow.service.commands.demo.log import RareLines
from kubestow.service.commands.demo.output import Output, end_on_signals, exit_code
from kubestow.service.commands.demo.parts import announce_page, demo_page_parts, save_if_asked
from kubestow.service.commands.scheduler_config import load_scheduler_config
from kubestow.service.logging import warnings_on_stderr
from kubestow.service.loops import LoopThread
from kubestow.service.output import stdout
from kubestow.service.page import local_page, page_metrics
from kubestow.simulator.live.time_control import PacedTime
from kubestow.simulator.live.workload import LivingWorkload, first_objects, size_for
from kubestow.simulator.paced_time import PacedLoop
from kubestow.simulator.served import ServedCluster, ServedOptions
from kubestow.simulator.virtual_time import VirtualClock


class PageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    options: ServedOptions
    # Of a cluster that is not loaded.
    nodes: Sequence[JsonObject] = ()
    config_path: Path | None = None
    load_paths: Sequence[Path] = ()
    save_path: Path | None = None
    for_s: float | None = None
    page_port: int = 0
    opens_page: bool = False
    speed: float = 1.0


def show_page(request: PageRequest) -> int:
    """Run until interrupted, or for some seconds; return the exit code."""
    output = Output(stdout())
    with warnings_on_stderr(RareLines(output.note_lines)):
        plugins = load_scheduler_config(request.config_path, gates=request.options.gates)
        documents = load_documents(request.load_paths)
        with asyncio.Runner(loop_factory=lambda: PacedLoop(request.speed)) as runner:
            return runner.run(_show(output, request, plugins, documents))


async def _show(
    output: Output,
    request: PageRequest,
    plugins: LoadedPlugins,
    documents: Sequence[Document],
) -> int:
    loop = cast(PacedLoop, asyncio.get_running_loop())
    ended = asyncio.Event()
    signals = end_on_signals(ended.set)
    clock, time = VirtualClock(loop, SystemClock().now_ns()), PacedTime(loop)
    history = AttemptHistory(clock)
    cluster = ServedCluster(
        request.options,
        clock,
        config=plugins.config,
        registry=plugins.registry,
        listeners=[history.decided],
        documents=[*documents, *_own_documents(request)],
        metrics=page_metrics(request.options.gates),
    )
    workload = LivingWorkload(cluster.store, clock, size_for(request.nodes))
    if not request.load_paths:
        cluster.parts.append(workload)
    with closing(LoopThread("page")) as thread:
        async with cluster.running():
            parts = demo_page_parts(
                cluster,
                plugins,
                request.options.gates,
                history,
                time=time,
                before_load=workload.stop,
            )
            async with local_page(parts, thread, port=request.page_port) as page:
                time.on_change = page.follower.touch
                nodes = counted(len(list(cluster.store.objects_of(NODES))), "node")
                output.print(f"An embedded cluster of {nodes} runs.\n")
                announce_page(output, page.address, opens=request.opens_page)
                output.print("Ctrl-C ends it.")
                await _wait(ended, thread, request.for_s)
    save_if_asked(output, cluster, request.save_path)
    return exit_code(signals)


def _own_documents(request: PageRequest) -> list[Document]:
    if request.load_paths:
        return []
    objects = (*first_objects(size_for(request.nodes)), *request.nodes)
    return [Document(one, "built-in") for one in objects]


async def _wait(ended: asyncio.Event, thread: LoopThread, limit_s: float | None) -> None:
    """Wait for the end, or for some seconds of real time."""
    waiting = asyncio.create_task(ended.wait())
    if limit_s is None:
        await waiting
        return
    timer = asyncio.create_task(thread.run(asyncio.sleep(limit_s)))
    await asyncio.wait((waiting, timer), return_when=asyncio.FIRST_COMPLETED)
    for task in (waiting, timer):
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
