"""`kubestow compare`: the command line.

Not here: options of the cluster (`input_options`), what a variant is
(`simulator.comparison.variants`), the work (`runs`), what is printed (`output`).
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kubestow.service.commands.input_options import takes_cluster
from kubestow.service.formats import CompareFormat
from kubestow.simulator.defaults import LARGEST_SEED, LIMIT_S, SEEDS_PER_COMPARISON

if TYPE_CHECKING:
    from kubestow.service.commands.cluster_input import InputRequest

SETTINGS: Final[dict[str, object]] = {
    "epilog": "Examples:\n\n"
    "\b\nkubestow compare -f cluster.yaml -f workload/ --variant packed=config.yaml\n"
    "kubestow compare --scenario day.yaml --variant v1.9 --seeds 10\n"
    "kubestow compare run.rec --variant rack=acme.rack:RackSpread\n"
    "kubestow compare --scenario day.yaml --variant packed=config.yaml "
    "--seeds 99 --on dask://scheduler:8786"
}


@takes_cluster
def compare(
    cluster: "InputRequest",
    recording: Annotated[
        Path | None,
        typer.Argument(
            metavar="RECORDING",
            help="A recording (kubestow run --record): its cluster, and the pods as they arrived.",
            show_default=False,
        ),
    ] = None,
    scenario: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A scenario: days of a cluster in virtual time, as YAML."
        ),
    ] = None,
    usage: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With a recording: measurements of what its pods used, as JSON lines or CSV.",
        ),
    ] = None,
    variants: Annotated[
        list[str] | None,
        typer.Option(
            "--variant",
            metavar="NAME=WHAT",
            help="A scheduler to compare: NAME alone is the default one; WHAT is a configuration "
            "(FILE), a version (v1.9, v1.17, v1.20, v1.36, v1.37), a plugin to add "
            "(module:Class), an action of the scenario to leave out (without:drain), or several "
            "of these with commas. May be repeated; others are compared with the first. "
            "A single one is compared with the default one.",
        ),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=SEEDS_PER_COMPARISON,
            help="Run each variant with this many seeds.",
        ),
    ] = 1,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=LARGEST_SEED,
            show_default="that of the scenario, or 0",
            help="The first seed.",
        ),
    ] = None,
    output: Annotated[CompareFormat, typer.Option("--output", "-o", help="How to print.")] = (
        CompareFormat.TABLE
    ),
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write a page with charts (.html); needs kubestow[reports].",
        ),
    ] = None,
    show: Annotated[
        int, typer.Option(metavar="N", min=0, help="In tables: list the first N pods that moved.")
    ] = 10,
    reasons: Annotated[
        bool,
        typer.Option(
            "--reasons/--no-reasons",
            help="Find out why pods moved: what has such pods is run a second time.",
        ),
    ] = True,
    times: Annotated[
        bool,
        typer.Option(
            "--times", help="Also measure the real time of runs and plugins; it always differs."
        ),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            show_default="one per core",
            help="Run in this many processes.",
        ),
    ] = None,
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="dask://HOST:PORT",
            help="Run on this Dask cluster instead; needs kubestow[dask] here, and the same "
            "version of kubestow and your plugins on its workers.",
        ),
    ] = "",
    limit: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            show_default=f"{LIMIT_S:g}",
            help="Without a scenario: stop each run after this much virtual time.",
        ),
    ] = LIMIT_S,
    feature_gates: Annotated[
        list[str] | None,
        typer.Option(
            "--feature-gates",
            metavar="NAME=BOOL,...",
            help="Features to switch on or off, in variants of today's version. May be repeated.",
        ),
    ] = None,
) -> None:
    """Compare schedulers on the same cluster and workload.

    Prints figures of each variant, how they differ from the first, and which pods went elsewhere
    and why. With several seeds, figures have confidence intervals (Student's t, 95 %). The same
    input gives the same output, wherever it runs.

    Exit codes: 0 done, 1 pods of workloads were refused, 2 the input or a variant cannot be used,
    3 a plugin or a worker failed, 130 interrupted. What could be run is printed in any case.
    """
    from kubestow.service.commands.compare.runs import CompareRequest, compare_and_print
    from kubestow.simulator.comparison.variants import read_variants

    request = CompareRequest(
        cluster=cluster,
        scenario=scenario,
        recording=recording,
        usage=usage,
        variants=read_variants(variants or ()),
        seed_count=seeds,
        first_seed=seed,
        output=output,
        report=report,
        show=show,
        finds_reasons=reasons,
        has_times=times,
        jobs=jobs,
        address=on,
        limit_s=limit,
        feature_gates=feature_gates or (),
    )
    raise typer.Exit(compare_and_print(request))
