"""`kubestow record`: the command line. Not here: the recording (`cluster`)."""

from pathlib import Path
from typing import Annotated

import typer

from kubestow.service.commands.file_options import Force


def record(
    file: Annotated[Path, typer.Argument(metavar="RECORDING", help="The file to write.")],
    kubeconfig: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            show_default="$KUBECONFIG, or ~/.kube/config",
            help="How to reach the cluster.",
        ),
    ] = "",
    context: Annotated[
        str,
        typer.Option(
            metavar="NAME", show_default="the current one", help="The context of the kubeconfig."
        ),
    ] = "",
    config_file: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="The configuration of the scheduler that runs there, with which replay decides.",
        ),
    ] = None,
    duration: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="DURATION",
            show_default="until Ctrl-C",
            help="How long to record, once nodes and pods are read: 90s, 10m, 2h.",
        ),
    ] = "",
    usage: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also keep what nodes and pods use, read every minute from metrics.k8s.io.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Record what a cluster's scheduler sees and decides.

    Nothing is written to the cluster. All kinds that decide where pods go are followed; secrets,
    environment variables and commands are left out. Afterwards kubestow replay decides on the same
    pods, as the version of the API server does, and says how far it agrees with the scheduler of
    that cluster.

    Example: kubestow record cluster.rec --for 1h && kubestow replay cluster.rec
    """
    from kubestow.service.commands.record.cluster import record_cluster

    raise typer.Exit(
        record_cluster(
            file,
            kubeconfig=kubeconfig,
            context=context,
            config_file=config_file,
            duration=duration,
            usage=usage,
            force=force,
        )
    )
