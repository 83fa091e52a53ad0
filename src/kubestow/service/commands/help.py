"""`kubestow help`: the same as `--help`, for those who type it first."""

from typing import Annotated, Any

import typer


def help(
    context: typer.Context,
    command: Annotated[str, typer.Argument(metavar="[COMMAND]", help="Of this one.")] = "",
) -> None:
    """Print the help of the program, or of a command.

    Example: kubestow help simulate
    """
    program: Any = context.parent
    if command:
        # Of a command that does not exist, the error names one that is like it.
        name, _, _ = program.command.resolve_command(program, [command])
        program.command.main([name, "--help"], prog_name="kubestow", standalone_mode=False)
    else:
        typer.echo(program.get_help())
