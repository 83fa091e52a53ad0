"""`kubestow help`: the same as `--help`, for those who type it first."""

from typing import Annotated, Any

import typer


def help(
    context: typer.Context,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[COMMAND]", help="Of this one.")
    ] = None,
) -> None:
    """Print the help of the program, or of a command.

    Example: kubestow help bench gangs
    """
    program: Any = context.parent
    if command:
        # Of a command that does not exist, the error names one that is like it.
        name, _, inner = program.command.resolve_command(program, command)
        program.command.main([name, *inner, "--help"], prog_name="kubestow", standalone_mode=False)
    else:
        typer.echo(program.get_help())
