"""`kubestow bench`: the command line.

Not here: measuring (`measure`), how the results are printed (`output`), gangs
(`gangs`), a virtual day (`day`), explanations (`explain`) and the soak
(`soak`).
"""

from pathlib import Path
from typing import Annotated

import typer

from kubestow.editions.compatibility import Compatibility
from kubestow.errors import InputError
from kubestow.service.commands.file_options import Force
from kubestow.service.formats import BenchFormat, VariantChoice


def bench(
    workload: Annotated[
        str, typer.Option(metavar="REGEX", help="Only workloads whose name matches.")
    ] = "",
    variant: Annotated[
        VariantChoice,
        typer.Option(
            help="How much the measured pods differ. plain: as the suite has them, mostly equal; "
            "unlike: each has a label and an owner of its own; all-unlike: requests of its own, "
            "too; all: one after the other."
        ),
    ] = VariantChoice.PLAIN,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Build each workload with this many nodes.")
    ] = None,
    pods: Annotated[
        int | None,
        typer.Option(min=1, help="Measure at most this many pods.", show_default="the workload's"),
    ] = None,
    percent: Annotated[
        int,
        typer.Option(
            min=0, max=100, help="percentageOfNodesToScore; 0 adapts to the size, as by default."
        ),
    ] = 0,
    repeat: Annotated[
        int,
        typer.Option(min=1, help="Run each this many times; print medians, and the extremes."),
    ] = 1,
    output: Annotated[BenchFormat, typer.Option("--output", "-o", help="How to print.")] = (
        BenchFormat.TABLE
    ),
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write where the time goes as folded stacks, which flame graph tools read.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Also decide a sample of the pods without reuse, and compare."
        ),
    ] = False,
    simulate: Annotated[
        bool,
        typer.Option(
            "--simulate",
            help="Instead of deciding alone, time whole simulations, as of kubestow simulate: "
            "queue, decisions, bindings, controllers.",
        ),
    ] = False,
    gangs: Annotated[
        bool,
        typer.Option(
            "--gangs",
            help="Instead, time cycles of pod groups: a gang of 1,000 that fits, 100 gangs of 64 "
            "that do not, 100 pods that do not. CPU time of the whole cycle and its parts.",
        ),
    ] = False,
    day: Annotated[
        bool,
        typer.Option(
            "--day",
            help="Instead, play a virtual day in which 100,000 pods arrive, run and end on 5,000 "
            "nodes: time, memory, and what takes the time. --nodes and --pods change its size.",
        ),
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Instead, time explanations in a cluster with ten pods on each node: of a pod "
            "that fits, and of one that does not, with suggestions.",
        ),
    ] = False,
    compatibility: Annotated[
        Compatibility,
        typer.Option(
            help="Time whole simulations of this version of kube-scheduler, with its defaults."
        ),
    ] = Compatibility.TODAY,
    soak: Annotated[
        str,
        typer.Option(
            metavar="SECONDS|DURATION",
            help="Instead of measuring speed, run the whole service this long (600 or 10m) while "
            "pods, nodes and all other objects come and go: memory, stalls, latency. Exit code 1 "
            "if something grows. --pods is how many pods are created in all.",
        ),
    ] = "",
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --soak: draw what was measured into this .svg or .png (needs the extra "
            "charts).",
        ),
    ] = None,
    http: Annotated[
        bool, typer.Option("--http", help="With --soak: the scheduler uses the API over HTTP.")
    ] = False,
    force: Force = False,
) -> None:
    """Measure how fast pods are decided on.

    Each workload runs in a process of its own, so that its peak memory is its own.
    kube-scheduler's figures come from another machine and are scaled by a calibration loop that
    runs meanwhile. On a busy machine they are left out: the last column says what disturbed it.

    Example: kubestow bench --workload 'SchedulingBasic|TopologySpreading' --repeat 5
    """
    kinds = {"--soak": soak, "--gangs": gangs, "--day": day, "--explain": explain}
    given = [flag for flag, value in kinds.items() if value]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} are different measurements; choose one")
    if soak:
        from kubestow.service.commands.bench.soak import run_soak

        if output is BenchFormat.PERF_JSON:
            raise InputError("-o: a soak is printed as table or json")
        code = run_soak(
            soak, nodes=nodes, pods=pods, over_http=http, output=output, plot=plot, force=force
        )
        raise typer.Exit(code)
    if gangs:
        from kubestow.service.commands.bench.gangs import run_gangs

        if output is BenchFormat.PERF_JSON:
            raise InputError("-o: times of gangs are printed as table or json")
        run_gangs(nodes=nodes, repeat=repeat, output=output)
        return
    if day:
        from kubestow.service.commands.bench.day import run_day_bench

        if output is BenchFormat.PERF_JSON:
            raise InputError("-o: times of a day are printed as table or json")
        run_day_bench(nodes=nodes, pods=pods, output=output)
        return
    if explain:
        from kubestow.service.commands.bench.explain import run_explanations

        if output is BenchFormat.PERF_JSON:
            raise InputError("-o: times of explanations are printed as table or json")
        run_explanations(nodes=nodes, output=output)
        return
    for flag, is_given in (("--http", http), ("--plot", plot is not None)):
        if is_given:
            raise InputError(f"{flag}: needs --soak")
    is_older = compatibility is not Compatibility.TODAY
    if (simulate or is_older) and check:
        raise InputError("--check: compares decisions, which a simulation does not time alone")
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
        is_simulated=simulate or is_older,
        compatibility=compatibility,
    )
    raise typer.Exit(measure_workloads(request))
