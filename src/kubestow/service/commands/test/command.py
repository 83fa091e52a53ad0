"""`kubestow test`: the command line.

Not here: the work (`run`), what is printed (`output`), a first file (`first_file`).
"""

from pathlib import Path
from typing import Annotated, Final

import typer

from kubestow.errors import InputError
from kubestow.service.commands.file_options import Force, MaxInput
from kubestow.service.commands.input_options import Context, FromCluster, Kubeconfig
from kubestow.service.formats import TestFormat

SETTINGS: Final[dict[str, object]] = {
    "epilog": "Examples:\n\n"
    "\b\nkubestow test\n"
    "kubestow test checks/ --against origin/main -o markdown\n"
    "kubestow test web.placement.yaml --report junit.xml\n"
    "kubestow test --init web.placement.yaml -f deploy/"
}
_FIRST: Final = "A first file"


def test(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH...",
            help="Files with placement tests, or folders with files *.placement.yaml.",
            show_default="the current folder",
        ),
    ] = None,
    output: Annotated[TestFormat, typer.Option("--output", "-o", help="How to print.")] = (
        TestFormat.TABLE
    ),
    report: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Also write a report: JUnit (.xml), Markdown (.md) or data (.json). May be "
            "repeated.",
        ),
    ] = None,
    against: Annotated[
        str,
        typer.Option(
            metavar="DIR|REF",
            help="Compare with another state of the files that the tests name: a folder in place "
            "of the current one, or a revision of git.",
        ),
    ] = "",
    only: Annotated[
        str,
        typer.Option("--only", metavar="TEXT", help="Only cases whose name has this text."),
    ] = "",
    plugins: Annotated[
        list[str] | None,
        typer.Option(
            "--plugin",
            metavar="module:Class",
            help="A plugin that configurations of the tests name and that may be imported. May be "
            "repeated.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, show_default="one per core", help="Run in this many processes."
        ),
    ] = None,
    init: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a first test from the manifests of -f or a cluster, and end.",
            rich_help_panel=_FIRST,
        ),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="With --init: manifests, a file or folder, a chart or a kustomization. May be "
            "repeated.",
            rich_help_panel=_FIRST,
        ),
    ] = None,
    from_cluster: FromCluster = False,
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    max_input: MaxInput = "",
    force: Force = False,
) -> None:
    """Test where pods are placed, and after which failures.

    A test is a file with a cluster, steps (manifests that are applied, nodes that fail, workloads
    that are scaled) and what must hold then: pods that are placed, pending, spread, apart, not
    evicted. It is played in virtual time. With forEach every node or zone fails in turn, each from
    a copy of the placed cluster.

    Of the table, HELD are expectations that hold of all, TRIED the failures of forEach, and FOUND
    is what breaks the first expectation.

    Exit codes: 0 all hold, 1 an expectation does not hold, 2 a file cannot be used or a case cannot
    be run, 130 interrupted: what there was is printed.
    """
    if init is not None:
        if paths or against or only or report:
            raise InputError(
                "--init runs no tests: leave out paths, --against, --only and --report; manifests "
                f"are given with -f: kubestow test --init {init} -f deploy/"
            )
        from kubestow.service.commands.cluster_input import InputRequest
        from kubestow.service.commands.test.first_file import write_first_file

        request = InputRequest(
            files=files or (),
            is_live=from_cluster,
            kubeconfig=kubeconfig,
            context=context,
            force=force,
        )
        raise typer.Exit(write_first_file(init, request))
    from kubestow.service.commands.test.run import TestRequest, run_tests

    raise typer.Exit(
        run_tests(
            TestRequest(
                paths=paths or [Path()],
                output=output,
                reports=report or (),
                against=against,
                only=only,
                plugins=plugins or (),
                jobs=jobs,
                force=force,
                has_init_options=any((files, from_cluster, kubeconfig, context)),
            )
        )
    )
