"""`kubestow simulate`: the command line.

Not here: options of the cluster (`input_options`), the simulation (`files`), what is
printed of its result (`output`).
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kubestow.editions import DEFAULT
from kubestow.editions.edition import Version
from kubestow.editions.flags import AlgorithmOptions
from kubestow.service.commands.input_options import takes_cluster
from kubestow.service.commands.scheduler_options import ConfigFile, FeatureGates
from kubestow.service.commands.simulate.policy_options import OLDER, takes_policy
from kubestow.service.formats import OutputFormat, TraceFormat
from kubestow.simulator.defaults import LARGEST_SEED, LIMIT_S, SEEDS_PER_COMPARISON

if TYPE_CHECKING:
    from kubestow.service.commands.cluster_input import InputRequest

SETTINGS: Final[dict[str, object]] = {
    "epilog": "What if? With --reschedule the pods of a live cluster are placed again, for example "
    "with another configuration:\n\n"
    "\b\nkubestow simulate --from-cluster --reschedule --config config.yaml\n"
    "kubestow simulate --from-cluster --drain node-1 --save cluster.json"
}
_TRACE: Final = "A trace"
_SCENARIO: Final = "A scenario"


@takes_cluster
@takes_policy
def simulate(
    cluster: "InputRequest",
    output: Annotated[OutputFormat, typer.Option("--output", "-o", help="How to print.")] = (
        OutputFormat.TABLE
    ),
    no_headers: Annotated[
        bool,
        typer.Option("--no-headers", help="Print the rows of tables only, without a summary."),
    ] = False,
    report: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Also write a report: a page (.html), data (.json, .csv, .parquet), a picture "
            "(.svg, .png), or a folder with all of them (no suffix). May be repeated.",
        ),
    ] = None,
    limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            show_default=f"{LIMIT_S:g}; of a trace, all of it",
            help="Stop after this much virtual time.",
        ),
    ] = None,
    scenario: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Play a scenario in virtual time, in which pods arrive and end, workloads are "
            "scaled, nodes fail and are repaired. Files given with -f are added to its cluster.",
            rich_help_panel=_SCENARIO,
        ),
    ] = None,
    until: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="With --scenario: end after this much virtual time, such as 90m or 24h.",
            rich_help_panel=_SCENARIO,
        ),
    ] = "",
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=LARGEST_SEED,
            help="With --scenario or --trace: where random numbers begin; equal seeds give equal "
            "results.",
            rich_help_panel=_SCENARIO,
        ),
    ] = None,
    repeat: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=SEEDS_PER_COMPARISON,
            help="With --scenario: play it with this many seeds, and print the mean of each figure "
            "with its 95 % interval.",
            rich_help_panel=_SCENARIO,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            show_default="one per core",
            help="With --repeat: run in this many processes.",
            rich_help_panel=_SCENARIO,
        ),
    ] = None,
    save_template: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a scenario to begin with, and end.",
            rich_help_panel=_SCENARIO,
        ),
    ] = None,
    trace: Annotated[
        TraceFormat | None,
        typer.Option(
            help="Play a trace, in which pods arrive and end: openb (Alibaba's GPU cluster trace "
            "of 2023), alibaba2018, azure2019, or csv with the columns of the guide.",
            rich_help_panel=_TRACE,
        ),
    ] = None,
    nodes: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --trace: the file of its nodes.", rich_help_panel=_TRACE
        ),
    ] = None,
    pods: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --trace: the file of its pods.", rich_help_panel=_TRACE
        ),
    ] = None,
    usage: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --trace: the file of what its pods used.",
            rich_help_panel=_TRACE,
        ),
    ] = None,
    config_file: ConfigFile = None,
    percentage: Annotated[
        int | None,
        typer.Option(
            "--percentage-of-nodes-to-score",
            min=0,
            max=100,
            help="How many percent of the nodes are enough to choose from; 0 adapts to the size. "
            "Overrides the configuration.",
        ),
    ] = None,
    feature_gates: FeatureGates = None,
    fail_on_pending: Annotated[
        bool,
        typer.Option("--fail-on-pending", help="Exit with code 1 when pods stay pending."),
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write what the scheduler sees and decides to this file, for kubestow "
            "replay.",
        ),
    ] = None,
    compatibility: Annotated[
        Version | None,
        typer.Option(
            show_default=f"that of the cluster it was read from, else {DEFAULT}",
            help="Decide as this version of kube-scheduler: with the plugins or rules, the queue, "
            "the cache and the choice among equals of its time.",
            rich_help_panel=OLDER,
        ),
    ] = None,
    *,
    algorithm: AlgorithmOptions,
) -> None:
    """Place a workload on a cluster, from files or a server.

    Prints where each pod goes, or why it waits. Pods without a node are placed; Deployments,
    StatefulSets, Jobs and other owners without pods in the input are replaced by the pods they
    would create. Kinds that no scheduler reads are ignored.

    Of scenarios and traces, USED is what is requested at the end, MEAN and PEAK over time;
    STRANDED is what is free on nodes on which no pod of the run fits that asks for the resource;
    IMBALANCE is how much nodes differ in what is used (the standard deviation).

    Exit codes: 0 done, 1 pods of workloads were refused or, with --fail-on-pending, pods stay
    pending, 2 the input cannot be used, 3 a plugin failed, 130 a scenario or trace was ended with
    Ctrl-C: what there was is printed.

    Example: kubestow simulate -f cluster.yaml -f workload/ -o wide
    """
    if save_template is not None:
        from kubestow.service.commands.simulate.scenario import write_template

        write_template(save_template, force=cluster.force)
        raise typer.Exit(0)
    from kubestow.recording.recording import RecordTo
    from kubestow.service.commands.cluster_input import edition_of
    from kubestow.service.commands.simulate.request import SimulateRequest

    request = SimulateRequest(
        cluster=cluster,
        scenario=scenario,
        until=until,
        seed=seed,
        repeat=repeat,
        jobs=jobs,
        trace=trace,
        nodes=nodes,
        pods=pods,
        usage=usage,
        output=output,
        has_headers=not no_headers,
        reports=report or (),
        record=None if record is None else RecordTo(record, "simulate", force=cluster.force),
        limit_s=limit,
        config_file=config_file,
        percentage=percentage,
        feature_gates=feature_gates or (),
        is_failing_on_pending=fail_on_pending,
        edition=edition_of(cluster, compatibility),
        algorithm=algorithm,
    )
    if repeat is not None or jobs is not None:
        from kubestow.service.commands.simulate.repeat import simulate_repeatedly

        raise typer.Exit(simulate_repeatedly(request))
    if scenario is not None:
        from kubestow.service.commands.simulate.scenario import simulate_scenario

        raise typer.Exit(simulate_scenario(request))
    if trace is not None:
        from kubestow.service.commands.simulate.trace import simulate_trace

        raise typer.Exit(simulate_trace(request))
    from kubestow.service.commands.simulate.files import simulate_files

    raise typer.Exit(simulate_files(request))
