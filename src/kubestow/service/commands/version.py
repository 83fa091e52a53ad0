"""`kubestow version`: what to write into a bug report."""

from typing import Annotated

import typer

from kubestow.service.formats import DataFormat


def version(
    output: Annotated[
        DataFormat, typer.Option("--output", "-o", help="How to print.")
    ] = DataFormat.TABLE,
) -> None:
    """Print the version of kubestow and of what it runs on.

    Kubernetes are the releases whose decisions kubestow follows.
    """
    from kubestow.service.versions import versions

    found = versions()
    if output is not DataFormat.TABLE:
        from kubestow.service.output import print_data

        print_data(found, output)
        return
    lines = {
        "kubestow": found.kubestow,
        "Kubernetes": ", ".join(found.kubernetes),
        "Python": found.python,
        "NumPy": found.numpy,
    }
    for label, text in lines.items():
        typer.echo(f"{label:<11} {text}")
