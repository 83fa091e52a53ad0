"""The text of a scenario, and where each field is written: errors name file, line and field."""

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Self, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import yaml

from kubestow.api.decode import entry_of, is_list, is_map, quoted
from kubestow.api.duration import parse_duration
from kubestow.api.files import parse_document
from kubestow.api.plain_types import plain
from kubestow.api.yaml_text import yaml_nodes
from kubestow.clock import NANOSECONDS
from kubestow.errors import DecodeError, InputError
from kubestow.files.reading import read_file

T = TypeVar("T", bound=msgspec.Struct)
FieldPath = Sequence[str | int]

_PROBLEM: Final = re.compile(r"(?P<text>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
_STEP: Final = re.compile(r"\.(?P<key>[^.\[]+)|\[(?P<index>\d+|\.\.\.)\]")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`$")
_MISSING: Final = re.compile(r"Object missing required field `(.*)`$")


class SourceText:
    """A text with one document; `name` is used in errors."""

    def __init__(self, name: str, raw: bytes) -> None:
        self.name: Final = name
        self._raw = raw
        try:
            self.value = parse_document(raw, name=name)
        except DecodeError as error:
            raise InputError(str(error)) from error

    @classmethod
    def of_file(cls, path: Path) -> Self:
        try:
            return cls(str(path), read_file(path))
        except OSError as error:
            raise InputError(f'cannot read "{path}": {error.strerror}') from error

    def read(self, cls: type[T]) -> T:
        """The document as a struct; InputError with the place of what does not fit."""
        if not is_map(self.value):
            found = "a list" if is_list(self.value) else "no map" if self.value else "nothing"
            raise self.error((), f"found {found}, expected a map of fields")
        try:
            return msgspec.convert(self.value, cls)
        except msgspec.ValidationError as error:
            raise self._decode_error(str(error), cls) from error

    def place(self, path: FieldPath) -> str:
        """File, line and field."""
        field = self.field(path)
        return f"{self.name}, line {self.line(path)}" + (f": {field}" if field else "")

    def field(self, path: FieldPath) -> str:
        """A path as text: `expect[0].placed`."""
        return _text_of(path)

    def error(self, path: FieldPath, problem: str) -> InputError:
        return InputError(f"{self.place(path)}: {problem}")

    def seconds(self, path: FieldPath, value: str | int | float, *, least_s: float = 0.0) -> float:
        """A duration of the document in seconds."""
        try:
            seconds = parse_seconds(value)
        except ValueError as error:
            raise self.error(path, f'is "{value}": {error}; expected, for example, 10m') from error
        if seconds < least_s or seconds == 0 < least_s:
            expected = "0 or more" if least_s == 0 else "more than 0"
            raise self.error(path, f'is "{value}", expected {expected}')
        return seconds

    def _decode_error(self, text: str, cls: type[msgspec.Struct]) -> InputError:
        found = _PROBLEM.match(text)
        assert found is not None, text
        path, problem = _path_of(found["path"] or ""), found["text"]
        if (unknown := _UNKNOWN.match(problem)) is not None:
            names = _field_names(cls, path)
            hint = near(unknown[1], names) or f"; expected one of {', '.join(names)}"
            return self.error((*path, unknown[1]), f"unknown field{hint}")
        if (missing := _MISSING.match(problem)) is not None:
            return self.error(path, f'the field "{missing[1]}" is missing')
        value = self.value
        for step in path:
            value = entry_of(value, step)
        expected = plain(problem)
        if examples := _examples(cls, path):
            expected = f"expected, for example, {examples[0]}"
        return self.error(path, f"is {quoted(value)}, {expected}")

    def line(self, path: FieldPath) -> int:
        """Where the field begins, or the last step of the path that is there."""
        node: Any = next((node for node, _ in yaml_nodes(self._raw)), None)
        line = 1 if node is None else node.start_mark.line + 1
        for step in path:
            if isinstance(node, yaml.MappingNode):
                pairs = [pair for pair in node.value if pair[0].value == step]
                if not pairs:
                    return line
                line, node = pairs[0][0].start_mark.line + 1, pairs[0][1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
                if step >= len(node.value):
                    return line
                node = node.value[step]
                line = node.start_mark.line + 1
            else:
                return line
        return line


def parse_seconds(value: str | int | float) -> float:
    """A duration in seconds; ValueError with what is wrong."""
    if isinstance(value, str):
        return parse_duration(value) / NANOSECONDS
    if not -1e9 <= value <= 1e9:
        raise ValueError("out of range")
    return float(value)


def near(name: str, known: Iterable[str]) -> str:
    """A hint at the known name that is most like this one; empty if none is."""
    similar = difflib.get_close_matches(name, list(known), n=1)
    return f'; did you mean "{similar[0]}"?' if similar else ""


def _path_of(text: str) -> list[str | int]:
    steps: list[str | int] = []
    for step in _STEP.finditer(text):
        if step["key"] is not None:
            steps.append(step["key"])
        elif step["index"] != "...":
            steps.append(int(step["index"]))
    return steps


def _text_of(path: FieldPath) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def _examples(cls: type[msgspec.Struct], path: FieldPath) -> list[Any]:
    """What the field at a path may look like, if its type fixes that."""
    if not path or isinstance(path[-1], int):
        return []
    return [
        example
        for kind in _structs_at(cls, path[:-1])
        for field in msgspec.structs.fields(kind)
        if field.encode_name == path[-1]
        for annotated in (field.type, *get_args(field.type))
        for meta in getattr(annotated, "__metadata__", ())
        for example in meta.examples or ()
    ]


def _field_names(cls: type[msgspec.Struct], path: FieldPath) -> list[str]:
    """The fields of the struct at a path, each once: there may be several structs."""
    fields = (
        field.encode_name
        for kind in _structs_at(cls, path)
        for field in msgspec.structs.fields(kind)
    )
    return list(dict.fromkeys(fields))


def _structs_at(cls: type[msgspec.Struct], path: FieldPath) -> list[type[msgspec.Struct]]:
    kinds: list[type[msgspec.Struct]] = [cls]
    for step in path:
        if isinstance(step, int):
            continue
        kinds = [
            inner
            for kind in kinds
            for field in msgspec.structs.fields(kind)
            if field.encode_name == step
            for inner in _structs_in(get_type_hints(kind)[field.name])
        ]
    return kinds


def _structs_in(kind: Any) -> list[type[msgspec.Struct]]:
    if get_origin(kind) is None:
        is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
        return [kind] if is_struct else []
    return [struct for argument in get_args(kind) for struct in _structs_in(argument)]
