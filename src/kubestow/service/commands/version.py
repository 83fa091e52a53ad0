"""`kubestow version`: what to write into a bug report."""

from typing import Annotated

import typer

from kubestow.service.formats import DataFormat

_LABELS = {"kubestow": "kubestow", "kubernetes": "Kubernetes", "python": "Python", "numpy": "NumPy"}


def version(
    output: Annotated[
        DataFormat, typer.Option("--output", "-o", help="How to print.")
    ] = DataFormat.TABLE,
) -> None:
    """Print the version of kubestow and of what it runs on.

    Kubernetes is the version whose decisions kubestow follows.
    """
    from kubestow.service.versions import versions

    found = versions()
    if output is not DataFormat.TABLE:
        from kubestow.service.output import print_data

        print_data(found, output)
        return
    for name, label in _LABELS.items():
        typer.echo(f"{label:<11} {getattr(found, name)}")
