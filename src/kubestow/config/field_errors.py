"""Errors of single fields, with the texts of upstream's validation (spec 09 §3.6).

An error is a text: `<path>: <kind>[: <value>][: <detail>]`. Users and their tools match on these
texts, so all of them are made here.
"""

import json
from collections.abc import Iterable, Sequence

from kubestow.api.labels import join_errors
from kubestow.config.scalars import Duration
from kubestow.errors import ConfigError


def invalid(path: str, value: object, detail: str) -> str:
    return f"{path}: Invalid value: {shown(value)}: {detail}"


def unsupported(path: str, value: str, supported: Iterable[str]) -> str:
    known = ", ".join(shown(word) for word in supported)
    return f"{path}: Unsupported value: {shown(value)}: supported values: {known}"


def duplicate(path: str, value: object) -> str:
    return f"{path}: Duplicate value: {shown(value)}"


def required(path: str, detail: str = "") -> str:
    return f"{path}: Required value: {detail}" if detail else f"{path}: Required value"


def forbidden(path: str, detail: str) -> str:
    return f"{path}: Forbidden: {detail}"


def child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def shown(value: object) -> str:
    """A value as errors print it: texts and durations quoted, the rest as JSON."""
    if isinstance(value, Duration):
        return f'"{value}"'
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def raise_if_any(errors: Sequence[str]) -> None:
    """All errors as one ConfigError: equal ones once, brackets around two or more."""
    if errors:
        raise ConfigError(join_errors(errors))
