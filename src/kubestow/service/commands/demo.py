"""`kubestow demo`: an embedded cluster, a workload, and a live view of the scheduler."""

import asyncio
import sys
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from kubestow.api.pod import Pod, first_condition
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cache.node_info import NodeInfo
from kubestow.clock import Clock
from kubestow.cluster.resources import PODS
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.decision import Decision
from kubestow.errors import InputError
from kubestow.queue import QueuedPod
from kubestow.service.commands.demo_serve import ServeRequest, serve_demo
from kubestow.service.commands.scheduler_config import checked_gates
from kubestow.service.output import stdout
from kubestow.simulator.controllers.node_lifecycle import GRACE_S
from kubestow.simulator.demo import Scene, scenes
from kubestow.simulator.embedded import EmbeddedCluster
from kubestow.simulator.kubelets import FakeKubelets
from kubestow.simulator.node_shapes import NODES_PER_CLUSTER, NodeShape, parse_shape
from kubestow.simulator.served import NODE_COUNT, ServedOptions
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time

_FEED_LINES = 10
# How long the bars are in terminals of at least this many columns; in others there are none.
_BAR_CELLS = ((100, 20), (80, 10))
_COLUMN_GAP = 2
_REDRAW_S = 0.25
# Virtual seconds between two objects of a scene.
_ARRIVAL_S = 0.05
# Virtual seconds from the last scene to the end: victims end and waiting pods are placed.
_EPILOGUE_S = 8.0


def demo(
    context: typer.Context,
    speed: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Virtual seconds per real second; 0 does not wait at all. "
            "The default is 3, and 0 without a terminal.",
        ),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve a cluster to kubectl until Ctrl-C.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="With --serve: the port; 0 takes a free one.")
    ] = 0,
    nodes: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=NODES_PER_CLUSTER,
            metavar="N",
            help="With --serve: how many nodes there are, of each shape without a count. "
            f"The default is {NODE_COUNT}, and 0 if nodes are loaded.",
        ),
    ] = None,
    node_shapes: Annotated[
        list[str] | None,
        typer.Option(
            "--node-shape",
            metavar="SHAPE",
            help="With --serve: what nodes have, such as "
            "cpu=8,memory=32Gi,pods=110,nvidia.com/gpu=4,label.disk=ssd,count=10. "
            "May be repeated.",
        ),
    ] = None,
    load: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="With --serve: begin with these objects: YAML or JSON, a directory, or - for "
            "standard input. May be repeated.",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --serve: write all objects to this file at the end, as JSON that --load "
            "reads. The data of secrets is left out.",
        ),
    ] = None,
    config_file: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="With --serve: configuration of the scheduler and its plugins, a "
            "KubeSchedulerConfiguration v1, YAML or JSON.",
        ),
    ] = None,
    feature_gates: Annotated[
        list[str] | None,
        typer.Option(
            "--feature-gates",
            metavar="NAME=BOOL,...",
            help="With --serve: features of the API server and the scheduler, such as "
            "GenericWorkload=true,GangScheduling=true for gangs. May be repeated.",
        ),
    ] = None,
    scheduler: Annotated[
        bool,
        typer.Option(help="With --serve: schedule pods, or leave that to another scheduler."),
    ] = True,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --serve: the kubeconfig. A context is added to one that exists, and taken "
            "out at the end; a new file is deleted at the end.",
        ),
    ] = None,
    node_grace: Annotated[
        float,
        typer.Option(
            "--node-monitor-grace-period",
            metavar="SECONDS",
            # Leases are renewed every 10 s and looked at every 5 s.
            min=15,
            help="With --serve: how long a node may be silent before it is lost.",
        ),
    ] = GRACE_S,
    for_s: Annotated[
        float | None,
        typer.Option(
            "--for",
            metavar="SECONDS",
            min=0,
            help="With --serve: end after this many seconds.",
        ),
    ] = None,
) -> None:
    """Show the scheduler in an embedded cluster. Nothing outside of it is changed.

    Ends after a few seconds with where pods were placed and why the others wait. With --serve
    another cluster, without pods, runs in real time, and kubectl can use it.

    Example: kubestow demo --speed 10

    Example: kubestow demo --serve --nodes 5

    Example: kubestow demo --serve --node-shape cpu=8,memory=32Gi,count=3 --load workload/
    """
    console = stdout()
    _check_mode(context, is_serving=serve)
    if serve:
        options = ServedOptions(
            port=port,
            nodes=nodes,
            shapes=tuple(map(parse_shape, node_shapes or ())) or (NodeShape(),),
            has_scheduler=scheduler,
            node_grace_s=node_grace,
            gates=checked_gates(feature_gates),
        )
        request = ServeRequest(
            options=options,
            kubeconfig_path=kubeconfig,
            config_path=config_file,
            load_paths=load or (),
            save_path=save,
            for_s=for_s,
        )
        raise typer.Exit(serve_demo(console, request))
    if speed is None:
        speed = 3.0 if console.is_terminal else 0.0
    run_in_virtual_time(_play(console, is_watched=speed > 0), speed=speed or None)


def _check_mode(context: typer.Context, *, is_serving: bool) -> None:
    """InputError for an option of the other mode: it would have no effect."""
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name == "serve" or source is None or source.name != "COMMANDLINE":
            continue
        is_negated = context.params[name] is False
        option = (parameter.secondary_opts if is_negated else parameter.opts)[0]
        if name == "speed" and is_serving:
            raise InputError(f"{option} has no effect with --serve, which runs in real time")
        if name != "speed" and not is_serving:
            raise InputError(f"{option} needs --serve: kubestow demo --serve {option} …")


async def _play(console: Console, *, is_watched: bool) -> None:
    clock = VirtualClock(asyncio.get_running_loop())
    store = MemoryCluster(clock)
    view = DemoView(console, clock, is_live=is_watched and console.is_terminal)
    story = scenes()
    store.load(story[0].documents)
    cluster = EmbeddedCluster(
        store,
        SchedulerConfig(),
        clock,
        listeners=[view.note],
        controllers=[FakeKubelets(store, clock)],
    )
    view.announce(story[0])
    async with cluster.running():
        with Live(console=console, auto_refresh=False, transient=True) as live:
            redrawing = asyncio.create_task(_redraw(live, view, cluster)) if view.is_live else None
            await _perform(store, clock, view, story[1:])
            if redrawing is not None:
                redrawing.cancel()
    view.print_summary(cluster)


async def _perform(
    store: MemoryCluster, clock: Clock, view: "DemoView", story: Iterable[Scene]
) -> None:
    for scene in story:
        await asyncio.sleep(max(0.0, scene.at_s - clock.monotonic_s()))
        view.announce(scene)
        for document in scene.documents:
            store.load([document])
            await asyncio.sleep(_ARRIVAL_S)
    await asyncio.sleep(_EPILOGUE_S)


async def _redraw(live: Live, view: "DemoView", cluster: EmbeddedCluster) -> None:
    while True:
        live.update(view.render(cluster), refresh=True)
        await asyncio.sleep(_REDRAW_S)


class DemoView:
    """The demo's output: a table of nodes, and a line per decision."""

    def __init__(self, console: Console, clock: Clock, *, is_live: bool) -> None:
        self._console = console
        self._clock = clock
        self.is_live = is_live
        self._feed: deque[str] = deque(maxlen=_FEED_LINES)
        self._last_messages: dict[str, str] = {}

    def announce(self, scene: Scene) -> None:
        self._say(f"[bold]{escape(scene.title)}[/bold]")

    def note(self, decision: Decision, queued_pod: QueuedPod) -> None:
        name = decision.pod.name
        if decision.is_scheduled:
            self._say(f"[green]{name:<12}[/green] → {decision.node_name}")
        elif self._last_messages.get(name) != decision.message:
            self._last_messages[name] = decision.message
            nominated = decision.nomination.node_name if decision.nomination else ""
            text = f"preempts on {nominated}" if nominated else f"waits: {decision.message}"
            self._say(f"[yellow]{name:<12}[/yellow] {escape(text)}")

    def _say(self, text: str) -> None:
        line = f"[dim]{self._clock.monotonic_s():5.1f}s[/dim]  {text}"
        self._feed.append(line)
        if not self.is_live:
            self._console.print(line)

    def render(self, cluster: EmbeddedCluster) -> Group:
        lines = [Text.from_markup(line, overflow="ellipsis") for line in self._feed]
        for line in lines:
            line.no_wrap = True
        return Group(node_table(cluster, self._console.width), Text(), *lines)

    def print_summary(self, cluster: EmbeddedCluster) -> None:
        self._console.print()
        self._console.print(node_table(cluster, self._console.width))
        pods = _pods(cluster.store)
        placed = [pod for pod in pods if pod.spec.node_name]
        waiting = [pod for pod in pods if not pod.spec.node_name]
        self._console.print(
            f"\n{len(placed)} pods run on {len({pod.spec.node_name for pod in placed})} nodes, "
            f"{len(waiting)} wait:"
        )
        for pod in waiting:
            condition = first_condition(pod.status.conditions, "PodScheduled")
            message = condition.message if condition is not None else "not tried yet"
            self._console.print(f"  [yellow]{pod.metadata.name:<12}[/yellow] {escape(message)}")
        sys.stdout.flush()


def node_table(cluster: EmbeddedCluster, width: int) -> Table:
    """The nodes and their load. In a narrow terminal the bars go first, names stay whole."""
    scheduler = cluster.scheduler
    scheduler.snapshot.refresh(scheduler.cache)
    infos = scheduler.snapshot.node_infos
    cells = next((cells for least, cells in _BAR_CELLS if width >= least), 0)
    name_width = max((len(info.name) for info in infos), default=0)
    bar_width = max(cells + len(" 100%"), len("MEMORY"))
    left = width - name_width - 2 * bar_width - 3 * _COLUMN_GAP
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("NODE", "CPU", "MEMORY"):
        table.add_column(column, no_wrap=True)
    # The last column gets what is left; without a limit all columns would become narrower.
    table.add_column("PODS", no_wrap=True, overflow="ellipsis", max_width=max(left, 1))
    for info in infos:
        requested, allocatable = info.requested, info.allocatable
        table.add_row(
            info.name,
            _bar(requested.milli_cpu, allocatable.milli_cpu, cells),
            _bar(requested.memory, allocatable.memory, cells),
            _pods_by_app(info),
        )
    return table


def _bar(used: int, total: int, cells: int) -> str:
    share = used / total if total else 0.0
    filled = min(round(share * cells), cells)
    color = "red" if share > 0.9 else "green"
    return f"[{color}]{'█' * filled}[/{color}]{'░' * (cells - filled)} {100 * share:3.0f}%"


def _pods_by_app(info: NodeInfo) -> str:
    counts: dict[str, int] = {}
    for pod in info.pods:
        app = pod.pod.metadata.labels.get("app", "?")
        counts[app] = counts.get(app, 0) + 1
    return "  ".join(f"{app} x{count}" for app, count in sorted(counts.items()))


def _pods(store: MemoryCluster) -> list[Pod]:
    return [stored.typed for stored in store.objects_of(PODS) if isinstance(stored.typed, Pod)]
