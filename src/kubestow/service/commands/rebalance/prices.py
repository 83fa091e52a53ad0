"""What nodes cost: from a label, from a file, or from a file by the value of a label."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from kubestow.api.files import Document, parse_document
from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import as_object, is_object, value_at
from kubestow.errors import DecodeError, InputError
from kubestow.files.reading import read_file


def prices_of(documents: Iterable[Document], label: str, file: Path | None) -> Mapping[str, float]:
    """The prices that are known, by node; InputError for one that is no number above 0."""
    listed = _listed(file) if file is not None else {}
    found: dict[str, float] = {}
    for document in documents:
        if document.raw.get("kind") != "Node":
            continue
        name: str = value_at(document.raw, "metadata", "name") or ""
        price = listed.get(name)
        if price is None and label:
            price = _by_label(document.raw, name, label, listed)
        if price is not None:
            found[name] = price
    return found


def _by_label(node: JsonObject, name: str, label: str, listed: Mapping[str, float]) -> float | None:
    value = as_object(value_at(node, "metadata", "labels")).get(label)
    if value is None:
        return None
    return listed[value] if value in listed else _price(value, f'node "{name}", label {label}')


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
