"""`kubestow plugin check`: try a plugin by itself, before it gets near a cluster.

Not here: the checks (`kubestow.testing.plugin_check`).
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kubestow.clock import SystemClock
from kubestow.config.documents import read_document
from kubestow.errors import InputError
from kubestow.service.logging import warnings_on_stderr
from kubestow.service.output import DataFormat, Table, print_data
from kubestow.testing.plugin_check import PluginReport, check_plugin


class PluginAction(StrEnum):
    CHECK = "check"


def plugin(
    action: Annotated[PluginAction, typer.Argument(metavar="check", help="What to do.")],
    reference: Annotated[
        str, typer.Argument(metavar="MODULE:CLASS", help="The plugin, as in a configuration.")
    ],
    args_file: Annotated[
        Path | None,
        typer.Option("--args", metavar="FILE", help="Its args of pluginConfig, YAML or JSON."),
    ] = None,
    output: Annotated[
        DataFormat, typer.Option("--output", "-o", help="How to print.")
    ] = DataFormat.TABLE,
) -> None:
    """Check a plugin with generated pods and nodes.

    The module has to be where Python finds it, for example by PYTHONPATH. Pods and nodes have
    labels that the plugin's module names.

    Exit codes: 0 nothing was found, 1 a check failed, 2 the plugin cannot be loaded.

    Example: PYTHONPATH=. kubestow plugin check my_plugins:PreferLabel --args args.yaml
    """
    del action  # There is one.
    with warnings_on_stderr():
        report = check_plugin(reference, _read_args(args_file), SystemClock())
    if output is DataFormat.TABLE:
        _print_table(report)
    else:
        print_data(report, output)
    raise typer.Exit(1 if report.has_failed else 0)


def _read_args(path: Path | None) -> object:
    if path is None:
        return None
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f'cannot read "{path}": {error.strerror}') from error
    return read_document(raw).value


def _print_table(report: PluginReport) -> None:
    typer.echo(f"{report.plugin}: {', '.join(report.methods)}")
    typer.echo("")
    table = Table("CHECK", "RESULT", "DETAIL")
    for finding in report.findings:
        table.add(finding.check, finding.result, finding.detail)
    table.print(is_cut=False)
    for duration in report.durations:
        typer.echo(
            f"{duration.method}: {duration.microseconds_per_node:g} µs per node "
            f"with {duration.node_count} nodes"
        )
