"""`kubestow plugin check`: the command line. Not here: what it does (`report`)."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kubestow.service.formats import DataFormat


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
    from kubestow.service.commands.plugin.report import report_plugin

    del action  # There is one.
    raise typer.Exit(report_plugin(reference, args_file, output))
