"""`kubestow capacity`: the command line.

Not here: options of the cluster (`input_options`), the work (`questions`), what is printed
(`output`).
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kubestow.service.commands.input_options import takes_cluster
from kubestow.service.commands.scheduler_options import Compatibility, ConfigFile, FeatureGates
from kubestow.service.formats import DataFormat

if TYPE_CHECKING:
    from kubestow.service.commands.cluster_input import InputRequest

SETTINGS: Final[dict[str, object]] = {
    "epilog": "Examples:\n\n"
    "\b\nkubestow capacity --from-cluster --fit pod.yaml\n"
    "kubestow capacity -f workload.yaml --need --shape cpu=8,memory=32Gi\n"
    "kubestow capacity --from-cluster --drain-check\n"
    "kubestow capacity --from-cluster --headroom --fit pod.yaml"
}
_NEED: Final = "With --need"


@takes_cluster
def capacity(
    cluster: "InputRequest",
    fit: Annotated[
        str,
        typer.Option(
            "--fit",
            metavar="FILE",
            help="How many more copies of what is in this file fit: a pod, or several, which then "
            "count as one copy together.",
        ),
    ] = "",
    need: Annotated[
        bool,
        typer.Option(
            "--need",
            help="Which nodes have to be added so that no pod waits: the fewest, or the cheapest, "
            "of the shapes given with --shape.",
        ),
    ] = False,
    drain_check: Annotated[
        bool,
        typer.Option(
            "--drain-check",
            help="Which nodes could go without any pod becoming pending, in order, and where "
            "their pods go.",
        ),
    ] = False,
    headroom: Annotated[
        bool,
        typer.Option(
            "--headroom",
            help="How much room each pool of nodes has for copies of --fit, or for pods of 1 cpu "
            "and 1Gi.",
        ),
    ] = False,
    output: Annotated[DataFormat, typer.Option("--output", "-o", help="How to print.")] = (
        DataFormat.TABLE
    ),
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="N",
            min=1,
            show_default="100000",
            help="Stop after this many copies.",
        ),
    ] = None,
    at_least: Annotated[
        int | None,
        typer.Option(
            "--at-least", metavar="N", min=1, help="Exit with code 1 if fewer copies fit."
        ),
    ] = None,
    pool_label: Annotated[
        str,
        typer.Option(
            "--pool-label",
            metavar="KEY",
            show_default="that of the provider",
            help="With --headroom: the label whose values are the pools.",
        ),
    ] = "",
    usage: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --headroom: measurements of what nodes really use, as JSON lines or CSV.",
        ),
    ] = None,
    shapes: Annotated[
        list[str] | None,
        typer.Option(
            "--shape",
            metavar="SHAPE",
            help="Nodes that can be added: name=m8,cpu=8,memory=32Gi,price=0.38 with any resource "
            "and label.KEY=VALUE, or a file with Nodes (price: annotation kubestow.io/price). "
            "May be repeated.",
            rich_help_panel=_NEED,
        ),
    ] = None,
    tries: Annotated[
        int | None,
        typer.Option(
            "--tries",
            metavar="N",
            min=1,
            show_default="200",
            help="Place the pods on this many different sets of nodes at most.",
            rich_help_panel=_NEED,
        ),
    ] = None,
    config_file: ConfigFile = None,
    feature_gates: FeatureGates = None,
    compatibility: Compatibility = None,
) -> None:
    """Find out how much room a cluster has.

    What fits, what is needed, what could go: every answer comes from placing pods with the
    scheduler itself; no pod is evicted for another. Pods of the cluster that wait are placed first.

    Exit codes: 0 done, 1 fewer copies fit than --at-least says or no set of nodes suffices,
    2 the input cannot be used, 3 a plugin failed.
    """
    from kubestow.service.commands.capacity.questions import CapacityRequest, answer
    from kubestow.service.logging import warnings_on_stderr

    request = CapacityRequest(
        cluster=cluster,
        output=output,
        fit=fit,
        is_need=need,
        is_drain_check=drain_check,
        is_headroom=headroom,
        limit=limit,
        at_least=at_least,
        pool_label=pool_label,
        usage=usage,
        shapes=shapes or (),
        tries=tries,
        config_file=config_file,
        feature_gates=feature_gates or (),
        compatibility=compatibility,
    )
    with warnings_on_stderr():
        code = answer(request)
    raise typer.Exit(code)
