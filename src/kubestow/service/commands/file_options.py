"""Options of commands that read files or write them."""

from typing import Annotated

import typer

from kubestow.files.reading import INPUT_BYTES, limit_input


def _limit(size: str) -> str:
    if size:
        limit_input(size)
    return size


MaxInput = Annotated[
    str,
    typer.Option(
        "--max-input",
        metavar="SIZE",
        callback=_limit,
        is_eager=True,
        show_default=f"{INPUT_BYTES >> 30}Gi, and much less for small files that are compressed",
        help="How large a file may be, and what it may unpack to, such as 512Mi or 4Gi.",
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Overwrite files that exist."),
]
