"""`kubestow demo`: an embedded cluster, a workload, and a live view of the scheduler."""

import asyncio
import sys
from collections import deque
from collections.abc import Iterable
from pathlib import Path

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
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions.edition import Edition
from kubestow.engine.decision import Decision
from kubestow.plural import counted
from kubestow.queue import QueuedPod
from kubestow.recording.recording import RecordTo
from kubestow.service.output import stdout
from kubestow.simulator.demo import Scene, scenes
from kubestow.simulator.embedded import EmbeddedCluster
from kubestow.simulator.kubelets import FakeKubelets
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time
from kubestow.simulator.walk import walk

_FEED_LINES = 10
# How long the bars are in terminals of at least this many columns; in others there are none.
_BAR_CELLS = ((100, 20), (80, 10))
_COLUMN_GAP = 2
_REDRAW_S = 0.25
# Virtual seconds between two objects of a scene.
_ARRIVAL_S = 0.05
# Virtual seconds from the last scene to the end: victims end and waiting pods are placed.
_EPILOGUE_S = 8.0


def play_demo(
    speed: float | None, record: Path | None, edition: Edition, *, force: bool = False
) -> None:
    """Play all scenes, at this many virtual seconds per real one; 0 does not wait.

    `record` is a file for what the scheduler sees and decides.
    """
    console = stdout()
    if speed is None:
        speed = 3.0 if console.is_terminal else 0.0
    to = None if record is None else RecordTo(record, "demo", force=force)
    gates = FeatureGates({}, edition)
    run_in_virtual_time(_play(console, to, gates, is_watched=speed > 0), speed=speed or None)


async def _play(
    console: Console, record: RecordTo | None, gates: FeatureGates, *, is_watched: bool
) -> None:
    clock = VirtualClock(asyncio.get_running_loop())
    store = MemoryCluster(clock, gates=gates)
    view = DemoView(console, clock, is_live=is_watched and console.is_terminal)
    story = scenes()
    store.load(story[0].documents)
    cluster = EmbeddedCluster(
        store,
        SchedulerConfig(),
        clock,
        listeners=[view.note],
        controllers=[FakeKubelets(store, clock)],
        gates=gates,
        record=record,
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
            f"\n{counted(len(placed), 'pod')} run on "
            f"{counted(len({pod.spec.node_name for pod in placed}), 'node')}, "
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


def tell_demo(edition: Edition, speed: float | None) -> None:
    """Print what happens inside a scheduler of that edition, line by line, at this many virtual
    seconds per real one (`kubestow demo --verbose`)."""
    run_in_virtual_time(_tell(edition), speed=speed or None)


async def _tell(edition: Edition) -> None:
    clock = VirtualClock(asyncio.get_running_loop())
    if edition.is_modern:
        await walk(_say, clock, gates=FeatureGates({}, edition))
        return
    # Imported here, like every other edition: only when it is to run.
    from kubestow.editions.walking import walk_edition

    await walk_edition(edition, _say, clock)


def _say(now_s: float, subject: str, text: str) -> None:
    style = "bold" if subject == "cluster" else "dim" if subject == "cache" else ""
    stdout().print(f"{now_s:5.1f}s  {subject:<9} {text}", style=style, markup=False)
