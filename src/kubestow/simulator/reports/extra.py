"""The optional extra `reports`, imported where it is needed and nowhere else."""

import importlib
from typing import Final

from kubestow.errors import InputError

INSTALL: Final = "pip install 'kubestow[reports]'"
# By the name to import: what people call it.
_PACKAGES: Final = {"altair": "Vega-Altair", "polars": "Polars", "vl_convert": "vl-convert"}


def require_extra(purpose: str, *packages: str) -> None:
    """InputError if a package is not installed; `purpose` is what needs it, as it was asked for."""
    for package in packages:
        try:
            importlib.import_module(package)
        except ImportError as error:
            name = _PACKAGES[package]
            raise InputError(
                f"{purpose}: needs {name}, which is not installed; {INSTALL}"
            ) from error
