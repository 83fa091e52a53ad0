"""`kubestow rebalance`: the command line.

Not here: options of the cluster (`input_options`), the work (`work`), what is printed (`output`).
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kubestow.service.commands.input_options import takes_cluster
from kubestow.service.commands.scheduler_options import Compatibility, ConfigFile, FeatureGates
from kubestow.service.formats import AlsoMoved, RebalanceFormat

if TYPE_CHECKING:
    from kubestow.service.commands.cluster_input import InputRequest

SETTINGS: Final[dict[str, object]] = {
    "epilog": "Examples:\n\n"
    "\b\nkubestow rebalance --from-cluster --goal spread\n"
    "kubestow rebalance -f cluster.yaml --goal empty-nodes --max-moves 50 -o script\n"
    "kubestow rebalance -f cluster.yaml --goal defragment=nvidia.com/gpu:4\n"
    "kubestow rebalance -f cluster.yaml --goal '2 * spread + 0.5 * balance' -o json\n"
    "kubestow rebalance --from-cluster --descheduler policy.yaml"
}
_STAY: Final = "What stays"
_POLICY: Final = "Policies of the descheduler"
_RUN: Final = "Carry it out"


@takes_cluster
def rebalance(
    cluster: "InputRequest",
    goal: Annotated[
        str,
        typer.Option(
            "--goal",
            metavar="GOAL",
            help="The figure that gets better: spread, balance, balance=used, empty-nodes, "
            "defragment=RESOURCE[:AMOUNT], violations, or a sum such as "
            "'2 * spread + 0.5 * balance'.",
        ),
    ] = "",
    max_moves: Annotated[
        int,
        typer.Option("--max-moves", metavar="N", min=1, help="Evict this many pods at most."),
    ] = 20,
    min_gain: Annotated[
        float,
        typer.Option(
            "--min-gain",
            metavar="FIGURE",
            min=0.0,
            help="Leave out moves that make the figure better by less than this.",
        ),
    ] = 0.0,
    time_limit: Annotated[
        float,
        typer.Option(
            "--time-limit",
            metavar="SECONDS",
            min=0.0,
            help="Look for this long at most. Ctrl-C ends it with the best plan so far.",
        ),
    ] = 60.0,
    output: Annotated[
        RebalanceFormat,
        typer.Option(
            "--output",
            "-o",
            help="How to print; script: a shell script with kubectl that carries the plan out and "
            "stops at the first surprise.",
        ),
    ] = RebalanceFormat.TABLE,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Also write a page (.html) with nodes before and after, step by step.",
        ),
    ] = None,
    start_time: Annotated[
        float,
        typer.Option(
            "--start-time",
            metavar="SECONDS",
            min=0.0,
            help="How long a pod takes to start, where its status does not show it.",
        ),
    ] = 10.0,
    usage: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With balance: measurements of what pods really use, as JSON lines or CSV; the "
            "figure is then of that.",
        ),
    ] = None,
    price_label: Annotated[
        str,
        typer.Option(
            "--price-label",
            metavar="KEY",
            help="With empty-nodes: the label of nodes that has their price, or its name in "
            "--prices.",
        ),
    ] = "",
    prices: Annotated[
        Path | None,
        typer.Option(
            "--prices",
            metavar="FILE",
            help="With empty-nodes: a YAML map of prices, by node or by the value of "
            "--price-label. Others cost 1.",
        ),
    ] = None,
    exclude_namespace: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude-namespace",
            metavar="NAME",
            help="Pods of this namespace stay. May be repeated.",
            rich_help_panel=_STAY,
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="SELECTOR",
            help="Pods with these labels stay, such as app=db. May be repeated.",
            rich_help_panel=_STAY,
        ),
    ] = None,
    nodes: Annotated[
        str,
        typer.Option(
            "--nodes",
            metavar="SELECTOR",
            help="Evict only from nodes with these labels.",
            rich_help_panel=_STAY,
        ),
    ] = "",
    max_priority: Annotated[
        int | None,
        typer.Option(
            "--max-priority",
            metavar="N",
            show_default="1999999999",
            help="Pods of a higher priority stay.",
            rich_help_panel=_STAY,
        ),
    ] = None,
    also: Annotated[
        list[AlsoMoved] | None,
        typer.Option(
            "--also",
            help="Evict pods that stay otherwise: with volumes on the disk of their node, or of "
            "Jobs. May be repeated.",
            rich_help_panel=_STAY,
        ),
    ] = None,
    surge: Annotated[
        bool,
        typer.Option(
            "--surge",
            help="Where a budget allows no disruption, or a pod is the only one of its controller: "
            "scale its Deployment or ReplicaSet up by one, and down once the new pod is ready.",
        ),
    ] = False,
    run: Annotated[
        bool,
        typer.Option(
            "--run",
            help="Carry the plan out, one eviction at a time; stop at the first surprise. Asks "
            "first. Needs --from-cluster.",
            rich_help_panel=_RUN,
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="With --run: do not ask.", rich_help_panel=_RUN)
    ] = False,
    replan: Annotated[
        bool,
        typer.Option(
            "--replan",
            help="With --run: after a surprise, look for another plan instead of ending.",
            rich_help_panel=_RUN,
        ),
    ] = False,
    pace: Annotated[
        str,
        typer.Option(
            "--pace",
            metavar="DURATION",
            help="With --run: at least this long between two evictions, such as 30s.",
            rich_help_panel=_RUN,
        ),
    ] = "",
    max_per_hour: Annotated[
        int,
        typer.Option(
            "--max-per-hour",
            metavar="N",
            min=0,
            show_default="no limit",
            help="With --run: at most this many evictions in an hour.",
            rich_help_panel=_RUN,
        ),
    ] = 0,
    hours: Annotated[
        str,
        typer.Option(
            "--hours",
            metavar="FROM-TO",
            help="With --run: evict only at these hours of the day (UTC), such as 22-6.",
            rich_help_panel=_RUN,
        ),
    ] = "",
    metrics_file: Annotated[
        Path | None,
        typer.Option(
            "--metrics-file",
            metavar="FILE",
            help="With --run: write what was done for Prometheus, as a text file.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    descheduler: Annotated[
        Path | None,
        typer.Option(
            "--descheduler",
            metavar="POLICY",
            help="Judge a policy of the descheduler (descheduler/v1alpha2) instead: which pods it "
            "evicts, where these really go, and whether it ends. With --goal also its figure.",
            rich_help_panel=_POLICY,
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            "--rounds",
            metavar="N",
            min=1,
            help="How often the policy runs at most, each time on what the run before left.",
            show_default="10",
            rich_help_panel=_POLICY,
        ),
    ] = None,
    config_file: ConfigFile = None,
    feature_gates: FeatureGates = None,
    compatibility: Compatibility = None,
) -> None:
    """Find out which pods to evict for a better placement.

    Each step is one eviction. Where its replacement goes is decided by the scheduler itself, on the
    state that the steps before left: no pod is evicted that would come back to its node, or find
    no place. Without --run nothing is changed in the cluster.

    Exit codes: 0 there is a plan, or nothing to make better, or all was carried out, or a policy
    ends and evicts nothing in vain, 1 nothing helps, or a run ended early, or the policy does not,
    2 the input cannot be used, 3 a plugin failed.
    """
    from kubestow.service.commands.rebalance.running import run_request
    from kubestow.service.commands.rebalance.work import RebalanceRequest, rebalanced
    from kubestow.service.logging import warnings_on_stderr

    request = RebalanceRequest(
        cluster=cluster,
        goal=goal,
        max_moves=max_moves,
        min_gain=min_gain,
        time_limit_s=time_limit,
        output=output,
        report=report,
        start_s=start_time,
        usage=usage,
        price_label=price_label,
        prices=prices,
        excluded_namespaces=exclude_namespace or (),
        excluded=exclude or (),
        nodes=nodes,
        max_priority=max_priority,
        also=also or (),
        surges=surge,
        config_file=config_file,
        feature_gates=feature_gates or (),
        compatibility=compatibility,
        policy=descheduler,
        rounds=rounds,
        run=run_request(
            is_run=run,
            yes=yes,
            replan=replan,
            pace=pace,
            max_per_hour=max_per_hour,
            hours=hours,
            metrics_file=metrics_file,
            surges=surge,
        ),
    )
    with warnings_on_stderr():
        code = rebalanced(request)
    raise typer.Exit(code)
