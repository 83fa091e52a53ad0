"""`kubestow replay`: the command line. Not here: the replay (`file`)."""

from pathlib import Path
from typing import Annotated

import typer

from kubestow.editions.edition import ModernVersion
from kubestow.errors import InputError
from kubestow.service.commands.file_options import MaxInput
from kubestow.service.formats import DataFormat


def replay(
    file: Annotated[Path, typer.Argument(metavar="RECORDING", help="The file of a recording.")],
    config_file: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Decide with this configuration instead: a KubeSchedulerConfiguration v1, YAML or "
            "JSON.",
        ),
    ] = None,
    compatibility: Annotated[
        ModernVersion | None,
        typer.Option(
            show_default="the recorded one",
            help="Decide as this version of kube-scheduler instead.",
        ),
    ] = None,
    plugins: Annotated[
        list[str] | None,
        typer.Option(
            "--plugin",
            metavar="PLUGIN",
            help="A plugin that the recorded scheduler had and that may be imported: module:Class, "
            "or the name of an installed one. May be repeated.",
        ),
    ] = None,
    show: Annotated[
        int, typer.Option(metavar="N", min=0, help="Print and explain the first N differences.")
    ] = 10,
    page: Annotated[
        bool,
        typer.Option(
            "--page", help="Show the recording on a page in the browser instead, until Ctrl-C."
        ),
    ] = False,
    open_page: Annotated[
        bool, typer.Option("--open", help="With --page: open it in the browser.")
    ] = False,
    page_port: Annotated[
        int,
        typer.Option(min=0, max=65_535, help="With --page: its port; 0 takes a free one."),
    ] = 0,
    max_input: MaxInput = "",
    output: Annotated[DataFormat, typer.Option("--output", "-o", help="How to print.")] = (
        DataFormat.TABLE
    ),
) -> None:
    """Make the decisions of a recording again, and compare.

    A recording of kubestow (run, simulate or demo with --record) is reproduced exactly: every
    change, answer and attempt in its order. With --config or --compatibility, what differs shows
    where another configuration or version decides otherwise, and which filters or scores made the
    difference; after each difference the recorded decision is carried out.

    A recording of another scheduler (kubestow record) shows whether it has the same rules: each of
    its decisions agrees, is explained by timing or by sampling, or was made by other rules.

    With --page it is played as fast as possible, and a slider goes back through what was attempted.

    Exit codes: 0 nothing differs, or only because of --config or --compatibility; 1 something
    differs, or another scheduler has other rules, 2 the file cannot be used.

    Example: kubestow replay run.rec --config config.yaml --show 3

    Example: kubestow replay run.rec --page --open
    """
    if page:
        from kubestow.service.commands.replay.page import show_recording

        code = show_recording(
            file, config_file, plugins or (), compatibility, port=page_port, opens=open_page
        )
        raise typer.Exit(code)
    if open_page or page_port:
        raise InputError("--open and --page-port need --page: kubestow replay FILE --page …")
    from kubestow.service.commands.replay.file import replay_and_print

    code = replay_and_print(
        file,
        config_file,
        plugins=plugins or (),
        compatibility=compatibility,
        show=show,
        output=output,
    )
    raise typer.Exit(code)
