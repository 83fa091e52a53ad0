"""What the page of an embedded cluster is made of, with kubectl beside it or without."""

from collections.abc import Callable
from pathlib import Path

from rich.markup import escape

from kubestow.config.feature_gates import FeatureGates
from kubestow.explain.history import AttemptHistory
from kubestow.plugins.loading import LoadedPlugins
from kubestow.plural import counted
from kubestow.service.commands.demo.output import Output
from kubestow.service.page import PageParts, open_browser
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.cluster_file import save_cluster
from kubestow.simulator.live.actions import ClusterActions
from kubestow.simulator.live.time_control import PacedTime
from kubestow.simulator.served import ServedCluster
from kubestow.web.protocol import ClockState
from kubestow.web.suggest import Suggester


def demo_page_parts(
    cluster: ServedCluster,
    plugins: LoadedPlugins,
    gates: FeatureGates,
    history: AttemptHistory,
    *,
    time: PacedTime | None = None,
    before_load: Callable[[], None] = lambda: None,
) -> PageParts:
    """The page of a cluster that runs; with `time` it can be paused.

    `history` has listened to the scheduler since it started.
    """
    embedded = cluster.embedded
    assert embedded is not None
    scheduler, clock = embedded.scheduler, embedded.clock

    def clock_state() -> ClockState:
        now_ms = clock.now_ns() // 1_000_000
        if time is None:
            return ClockState(time=now_ms)
        return ClockState(time=now_ms, speed=time.speed, paused=time.is_paused, can_change=True)

    return PageParts(
        mode="demo",
        scheduler=scheduler,
        listeners=embedded.listeners,
        config=plugins.config,
        gates=gates,
        clock=clock,
        history=history,
        suggest=Suggester(
            scheduler, plugins.config, embedded.client, clock, plugins.registry, gates
        ),
        time=clock_state,
        actions=ClusterActions(
            cluster.store,
            clock,
            time=time,
            before_load=before_load,
            setup=PlacingSetup(plugins.config, plugins.registry, gates),
        ),
    )


def announce_page(output: Output, address: str, *, opens: bool) -> None:
    output.keep_in_sight(f"The page: [bold]{escape(address)}[/bold]\n")
    if opens and not open_browser(address):
        output.print("No browser was found; open the address yourself.\n")


def save_if_asked(output: Output, cluster: ServedCluster, path: Path | None) -> None:
    if path is None:
        return
    report = save_cluster(cluster.store, path)
    output.print(f"\nSaved {counted(report.object_count, 'object')} to {escape(str(path))}.")
    if report.secret_count:
        output.print(f"The data of {counted(report.secret_count, 'secret')} is left out.")
