"""`kubestow bench`: the command line, and those of its subcommands.

Not here: measuring decisions and simulations (`measure`), how the results are printed (`output`),
gangs (`gangs`), a virtual day (`day`), explanations (`explain`), the plugin LoadAware (`load`),
placement tests (`tests`), the soak (`soak`), and options that are subcommands by now (`earlier`).
"""

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from kubestow.editions import DEFAULT
from kubestow.editions.edition import Version
from kubestow.errors import InputError
from kubestow.service.commands.bench.earlier import with_subcommand
from kubestow.service.commands.file_options import Force
from kubestow.service.formats import BenchFormat, TimesFormat, VariantChoice
from kubestow.service.help import PlainGroup
from kubestow.simulator.defaults import NODES_PER_CLUSTER

# Decisions are measured in larger clusters than there can be, to see how their cost grows.
MOST_NODES: Final = 1_000_000

_Workload = Annotated[str, typer.Option(metavar="REGEX", help="Only workloads whose name matches.")]
_Variant = Annotated[
    VariantChoice,
    typer.Option(
        help="How much the measured pods differ. plain: as the suite has them, mostly equal; "
        "unlike: each has a label and an owner of its own; all-unlike: requests of its own, "
        "too; all: one after the other."
    ),
]
_EachNodes = Annotated[
    int | None,
    typer.Option(min=1, max=MOST_NODES, help="Build each workload with this many nodes."),
]
_EachPods = Annotated[
    int | None,
    typer.Option(min=1, help="Measure at most this many pods.", show_default="the workload's"),
]
_Percent = Annotated[
    int,
    typer.Option(
        min=0, max=100, help="percentageOfNodesToScore; 0 adapts to the size, as by default."
    ),
]
_Repeat = Annotated[
    int, typer.Option(min=1, help="Run each this many times; print medians, and the extremes.")
]
_Profile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write where the time goes as folded stacks, which flame graph tools read.",
    ),
]
_Output = Annotated[BenchFormat, typer.Option("--output", "-o", help="How to print.")]
_TimesOutput = Annotated[TimesFormat, typer.Option("--output", "-o", help="How to print.")]
_Nodes = Annotated[int, typer.Option(min=1, max=NODES_PER_CLUSTER, help="How many there are.")]


class _BenchGroup(PlainGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_subcommand(args, self.commands))


SETTINGS: Final = {"cls": _BenchGroup, "subcommand_metavar": "[COMMAND [ARGS]...]"}


def bench(
    context: typer.Context,
    workload: _Workload = "",
    variant: _Variant = VariantChoice.PLAIN,
    nodes: _EachNodes = None,
    pods: _EachPods = None,
    percent: _Percent = 0,
    repeat: _Repeat = 1,
    output: _Output = BenchFormat.TABLE,
    profile: _Profile = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Also decide a sample of the pods without reuse, and compare."
        ),
    ] = False,
    force: Force = False,
) -> None:
    """Measure how fast pods are decided on.

    Each workload runs in a process of its own, so that its peak memory is its own.
    kube-scheduler's figures come from another machine and are scaled by a calibration loop that
    runs meanwhile. On a busy machine they are left out: the last column says what disturbed it.

    The commands measure something else; each has options of its own.

    Example: kubestow bench --workload 'SchedulingBasic|TopologySpreading' --repeat 5
    """
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    from kubestow.service.commands.bench.measure import BenchRequest, measure_workloads

    request = BenchRequest(
        workload=workload,
        variant=variant,
        nodes=nodes,
        pods=pods,
        percent=percent,
        repeat=repeat,
        output=output,
        profile=profile,
        force=force,
        is_checked=check,
    )
    raise typer.Exit(measure_workloads(request))


def _refuse_options(context: Any) -> None:
    """Options before a subcommand would have no effect."""
    for param in context.command.params:
        if context.get_parameter_source(param.name).name == "COMMANDLINE":
            subcommand = context.invoked_subcommand
            raise InputError(
                f"{param.opts[0]}: belongs after {subcommand}, if kubestow bench {subcommand} "
                "has such an option"
            )


def simulate(
    workload: _Workload = "",
    variant: _Variant = VariantChoice.PLAIN,
    nodes: _EachNodes = None,
    pods: _EachPods = None,
    percent: _Percent = 0,
    repeat: _Repeat = 1,
    output: _Output = BenchFormat.TABLE,
    profile: _Profile = None,
    compatibility: Annotated[
        Version, typer.Option(help="Of this version of kube-scheduler, with its defaults.")
    ] = DEFAULT,
    force: Force = False,
) -> None:
    """Time whole simulations, not decisions alone.

    As of kubestow simulate: queue, decisions, bindings, controllers.

    Example: kubestow bench simulate --compatibility v1.9 --workload 'SchedulingBasic$'
    """
    from kubestow.service.commands.bench.measure import BenchRequest, measure_workloads

    request = BenchRequest(
        workload=workload,
        variant=variant,
        nodes=nodes,
        pods=pods,
        percent=percent,
        repeat=repeat,
        output=output,
        profile=profile,
        force=force,
        is_simulated=True,
        compatibility=compatibility,
    )
    raise typer.Exit(measure_workloads(request))


def gangs(
    nodes: _Nodes = 5_000,
    repeat: Annotated[
        int, typer.Option(min=1, help="Run each this many times; print the fastest.")
    ] = 1,
    output: _TimesOutput = TimesFormat.TABLE,
) -> None:
    """Time cycles of pod groups.

    A gang of 1,000 that fits, 100 gangs of 64 that do not, 100 pods that do not. CPU time of the
    whole cycle and its parts.

    Example: kubestow bench gangs --repeat 3
    """
    from kubestow.service.commands.bench.gangs import run_gangs

    run_gangs(nodes=nodes, repeat=repeat, output=output)


def day(
    nodes: _Nodes = 5_000,
    pods: Annotated[int, typer.Option(min=1, help="How many arrive, about.")] = 100_000,
    output: _TimesOutput = TimesFormat.TABLE,
) -> None:
    """Play a virtual day in which pods arrive, run and end.

    Prints its time and memory, and what takes the time.

    Example: kubestow bench day --nodes 500 --pods 10000
    """
    from kubestow.service.commands.bench.day import run_day_bench

    run_day_bench(nodes=nodes, pods=pods, output=output)


def explain(
    nodes: _Nodes = 5_000,
    output: _TimesOutput = TimesFormat.TABLE,
) -> None:
    """Time explanations in a cluster with ten pods on each node.

    Of a pod that fits, and of one that does not, with suggestions.

    Example: kubestow bench explain --nodes 1000
    """
    from kubestow.service.commands.bench.explain import run_explanations

    run_explanations(nodes=nodes, output=output)


def load(
    nodes: _Nodes = 5_000,
    pods: Annotated[int, typer.Option(min=100, help="How many are decided on.")] = 5_000,
    output: _TimesOutput = TimesFormat.TABLE,
) -> None:
    """Time decisions with the plugin LoadAware and without it, in turns.

    CPU time per pod of SchedulingBasic: without measurements, with them, and with nodes that are
    left out.

    Example: kubestow bench load --nodes 1000
    """
    from kubestow.service.commands.bench.load import run_load_bench

    run_load_bench(nodes=nodes, pods=pods, output=output)


def tests(
    nodes: _Nodes = 1_000,
    pods: Annotated[int, typer.Option(min=1, help="How many there are.")] = 10_000,
    cases: Annotated[int, typer.Option(min=1, help="How many small cases there are.")] = 300,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="In this many processes.", show_default="one per core"),
    ] = None,
    output: _TimesOutput = TimesFormat.TABLE,
) -> None:
    """Time placement tests, as of kubestow test.

    Every node of a cluster fails in turn, each with what is placed again; and small cases of 10
    nodes and 20 pods.

    Example: kubestow bench tests --nodes 100 --pods 1000
    """
    from kubestow.service.commands.bench.tests import run_test_bench

    run_test_bench(nodes=nodes, pods=pods, cases=cases, jobs=jobs, output=output)


def rebalance(
    nodes: _Nodes = 5_000,
    pods: Annotated[int, typer.Option(min=1, help="How many there are.")] = 50_000,
    moves: Annotated[int, typer.Option(min=1, help="Evict this many at most.")] = 200,
    output: _TimesOutput = TimesFormat.TABLE,
) -> None:
    """Time plans of evictions, as of kubestow rebalance.

    Pods of many workloads are on nodes that are unevenly full.

    Example: kubestow bench rebalance --nodes 500 --pods 5000
    """
    from kubestow.service.commands.bench.rebalance import run_rebalance_bench

    run_rebalance_bench(nodes=nodes, pods=pods, moves=moves, output=output)


def soak(
    duration: Annotated[
        str, typer.Argument(metavar="DURATION", help="How long, in seconds (600) or as 10m.")
    ],
    nodes: _Nodes = 200,
    pods: Annotated[
        int | None,
        typer.Option(min=1, help="How many are created in all.", show_default="100 in each second"),
    ] = None,
    http: Annotated[
        bool, typer.Option("--http", help="The scheduler uses the API over HTTP.")
    ] = False,
    output: _TimesOutput = TimesFormat.TABLE,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw what was measured into this .svg or .png (needs the extra reports).",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Run the whole service in real time while everything comes and goes.

    Pods, nodes and all other objects: memory, stalls, latency. Exit code 1 if something grows.

    Example: kubestow bench soak 10m --plot soak.svg
    """
    from kubestow.service.commands.bench.soak import run_soak

    raise typer.Exit(
        run_soak(
            duration, nodes=nodes, pods=pods, over_http=http, output=output, plot=plot, force=force
        )
    )


SUBCOMMANDS: Final = (simulate, gangs, day, explain, load, tests, rebalance, soak)
