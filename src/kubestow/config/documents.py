"""The text of a configuration, YAML or JSON, as a document that keeps duplicate keys.

Duplicate keys are errors (spec 09 §3.1), but they do not end the reading: all errors of a file are
reported together. Of such a key the last value counts.

Not here: which fields there are (`strict`).
"""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import yaml

from kubestow.api.decode import is_list, is_map
from kubestow.api.json_text import extent_of
from kubestow.api.yaml_text import LEVELS_MAX, TAG, value_of, yaml_nodes
from kubestow.errors import ConfigError


class FieldMap(dict[str, Any]):
    """A map with all its keys in the order of the text, also duplicates."""

    def __init__(self, pairs: Iterable[tuple[str, Any]]) -> None:
        self.written = tuple(pairs)
        super().__init__(self.written)

    @property
    def written_keys(self) -> tuple[str, ...]:
        return tuple(key for key, _ in self.written)


class ConfigDocument(NamedTuple):
    value: object
    # Errors of duplicate YAML keys; those of JSON are found with the unknown fields.
    duplicate_keys: tuple[str, ...] = ()


def read_document(raw: bytes) -> ConfigDocument:
    """The first document of the text; raises ConfigError if it is neither YAML nor JSON."""
    try:
        text = raw.decode()
        if text.lstrip().startswith("{"):
            try:
                value = json.loads(text, object_pairs_hook=FieldMap)
                if extent_of(value).levels > LEVELS_MAX:
                    raise RecursionError
                return ConfigDocument(value)
            except ValueError:  # no JSON, or a number of thousands of digits
                pass  # Braces may also be YAML, whose error is then the right one.
        return _read_yaml(text)
    except UnicodeDecodeError as error:
        raise ConfigError(f"the configuration is not UTF-8 text: {error}") from error
    except RecursionError as error:
        raise ConfigError(
            f"the configuration is nested more than {LEVELS_MAX} levels deep"
        ) from error


def without_keys(document: dict[str, Any], *keys: str) -> dict[str, Any]:
    """A copy of the document without some fields."""
    if isinstance(document, FieldMap):
        return FieldMap((key, value) for key, value in document.written if key not in keys)
    return {key: value for key, value in document.items() if key not in keys}


def plain(value: object) -> Any:
    """A copy of the value with ordinary maps."""
    if is_map(value):
        return {key: plain(entry) for key, entry in value.items()}
    if is_list(value):
        return [plain(entry) for entry in value]
    return value


def _read_yaml(text: str) -> ConfigDocument:
    try:
        for node, loader in yaml_nodes(text):
            duplicates: list[str] = []
            _check_keys(node, duplicates)
            return ConfigDocument(_sorted(value_of(node, loader)), tuple(duplicates))
        return ConfigDocument(None)
    except yaml.YAMLError as error:
        raise ConfigError(f"error converting YAML to JSON: yaml: {_problem_of(error)}") from error


def _check_keys(node: yaml.Node, duplicates: list[str]) -> None:
    """Make every key a string, and collect duplicates."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            _check_key(key)
            if key.value in seen:
                # Upstream gives the line of the value, not of the key.
                line = value.start_mark.line + 1
                duplicates.append(f"line {line}: key {json.dumps(key.value)} already set in map")
            seen.add(key.value)
            _check_keys(value, duplicates)
    elif isinstance(node, yaml.SequenceNode):
        for entry in node.value:
            _check_keys(entry, duplicates)


def _check_key(key: yaml.Node) -> None:
    if not isinstance(key, yaml.ScalarNode):
        raise yaml.MarkedYAMLError(problem="expected a text as key", problem_mark=key.start_mark)
    if not key.tag.endswith(":merge"):
        key.tag = f"{TAG}str"


def _sorted(value: object) -> object:
    # Upstream converts YAML to JSON with sorted keys first, which orders the errors.
    if is_map(value):
        return FieldMap((key, _sorted(entry)) for key, entry in sorted(value.items()))
    if is_list(value):
        return [_sorted(entry) for entry in value]
    return value


def _problem_of(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    return " ".join(str(error).split())
