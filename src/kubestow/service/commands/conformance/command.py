"""`kubestow conformance`: the command line. Not here: the replay (`replay`)."""

from pathlib import Path
from typing import Annotated

import typer

from kubestow.service.commands.file_options import MaxInput
from kubestow.service.formats import DataFormat
from kubestow.simulator.recorded_parts import PARTS


def conformance(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Recordings, gzipped JSON or JSON, or directories of them.",
            show_default="those of the repository",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART",
            help=f"Compare only this part: {', '.join(PARTS)}; or one plugin's share of it, "
            "such as verdicts/TaintToleration or scores/ImageLocality. May be repeated.",
        ),
    ] = None,
    show: Annotated[
        int, typer.Option(metavar="N", min=0, help="Print the first N differences.")
    ] = 3,
    max_input: MaxInput = "",
    output: Annotated[DataFormat, typer.Option("--output", "-o", help="How to print.")] = (
        DataFormat.TABLE
    ),
) -> None:
    """Compare with recorded decisions of kube-scheduler.

    The decisions are made again, and what differs is counted and shown. Exit code 0 means that
    nothing differs, 1 that something does.

    Example: kubestow conformance conformance/v1.9 --only verdicts/PodFitsResources --show 3
    """
    from kubestow.service.commands.conformance.replay import compare_recordings

    raise typer.Exit(compare_recordings(paths or (), only or (), show=show, output=output))
