"""`kubestow version`: what to write into a bug report."""

from typing import Annotated

import msgspec
import typer

from kubestow.service.output import DataFormat, print_data
from kubestow.service.versions import versions

_LABELS = {"kubestow": "kubestow", "kubernetes": "Kubernetes", "python": "Python", "numpy": "NumPy"}


def version(
    output: Annotated[
        DataFormat, typer.Option("--output", "-o", help="How to print.")
    ] = DataFormat.TABLE,
) -> None:
    """Print the version of kubestow and of what it runs on.

    Kubernetes is the version whose decisions kubestow follows.
    """
    found = versions()
    if output is not DataFormat.TABLE:
        print_data(found, output)
        return
    for name, value in msgspec.structs.asdict(found).items():
        typer.echo(f"{_LABELS[name]:<11} {value}")
