"""What nodes cost: from a label, from a file, or from a file by the value of a label."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from kubestow.api.files import Document, parse_document
from kubestow.api.meta import JsonObject
from kubestow.close_names import close_hint
from kubestow.cluster.documents import as_object, is_object, value_at
from kubestow.errors import DecodeError, InputError
from kubestow.files.reading import read_file

_NAMES_SHOWN: Final = 3


def prices_of(documents: Iterable[Document], label: str, file: Path | None) -> Mapping[str, float]:
    """The prices that are known, by node; InputError for one that is no number above 0, and if
    no node has one."""
    listed = _listed(file) if file is not None else {}
    nodes = [document.raw for document in documents if document.raw.get("kind") == "Node"]
    found: dict[str, float] = {}
    for node in nodes:
        name: str = value_at(node, "metadata", "name") or ""
        price = listed.get(name)
        if price is None and label:
            price = _by_label(node, name, label, listed)
        if price is not None:
            found[name] = price
    if nodes and not found and (label or file is not None):
        raise InputError(_without_prices(nodes, label, file, listed))
    return found


def _labels(node: JsonObject) -> JsonObject:
    return as_object(value_at(node, "metadata", "labels"))


def _by_label(node: JsonObject, name: str, label: str, listed: Mapping[str, float]) -> float | None:
    value = _labels(node).get(label)
    if value is None:
        return None
    return listed[value] if value in listed else _price(value, f'node "{name}", label {label}')


def _without_prices(
    nodes: Sequence[JsonObject], label: str, file: Path | None, listed: Mapping[str, float]
) -> str:
    """Why no node has a price: each would cost 1, as without the options."""
    if label:
        hint = close_hint(label, {key for node in nodes for key in _labels(node)})
        return f'--price-label: no node has the label "{label}"{hint}'
    names = ", ".join(f'"{name}"' for name in list(listed)[:_NAMES_SHOWN]) or "nothing"
    return (
        f'prices "{file}": there is no node of these names: {names}; if they are values of a '
        "label of nodes, name it with --price-label"
    )


def _listed(file: Path) -> dict[str, float]:
    try:
        content = parse_document(read_file(file), name=str(file))
    except OSError as error:
        raise InputError(f'prices "{file}": {error.strerror}') from error
    except DecodeError as error:
        raise InputError(f"prices: {error}") from error
    if not is_object(content):
        raise InputError(f'prices "{file}": expected a map, such as "m8.large: 0.38"')
    return {str(key): _price(value, f'prices "{file}", {key}') for key, value in content.items()}


def _price(value: object, where: str) -> float:
    try:
        price = float(str(value))
    except ValueError:
        price = math.nan
    if not 0 < price < math.inf:
        raise InputError(f'{where}: the price is "{value}", expected a number above 0')
    return price
