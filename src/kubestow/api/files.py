"""Kubernetes objects from files: YAML, JSON, lists as kubectl prints them, directories, pipes.

Files are written by hand, so every error names the file, the place in it and what to do. Either
everything given loads or nothing does: half a cluster would silently give wrong answers.

YAML is read as kubectl reads it (`yaml_text`); a key given twice is an error, in JSON too.
Not here: what the API server fills in, storing the objects.
"""

import itertools
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
import yaml

from kubestow import collector
from kubestow.api.check import OWNERS_OF_PODS, check_counts, check_object
from kubestow.api.decode import class_of, convert, is_list, is_map, quoted
from kubestow.api.deep_json import DeepJson
from kubestow.api.json_text import Extent, duplicate_key, extent_of
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.api.yaml_text import (
    LEVELS_MAX,
    TAG,
    YamlSizeError,
    plain_values,
    value_of,
    yaml_nodes,
)
from kubestow.errors import DecodeError
from kubestow.files.reading import (
    DamagedError,
    TotalSize,
    files_below,
    read_file,
    read_stream,
    unpacked,
)

STDIN: Final = "-"
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_UTF8_BOM: Final = b"\xef\xbb\xbf"
# Files by which kustomize finds its folders. Their kind may be left out: it follows from the name.
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml")
_KUSTOMIZATION_TYPE: Final = {
    "apiVersion": "kustomize.config.k8s.io/v1beta1",
    "kind": "Kustomization",
}
_CHART_FILES: Final = ("Chart.yaml", "values.yaml")
_HELM_HINT: Final = "; a Helm chart is rendered with: helm template CHART"


class Document(msgspec.Struct, frozen=True):
    """One object as it was written, and where: `web.yaml#2` is the second document of its file."""

    raw: JsonObject
    source: str


def load_documents(
    paths: Iterable[str | Path],
    *,
    stdin: BinaryIO | None = None,
    on_other: Callable[[str], None] | None = None,
    on_refused: Callable[[str], None] | None = None,
) -> list[Document]:
    """All objects in the files, in the order given; those of a directory in the order of paths.

    A directory may have files that are no manifests, such as settings of other programs: given
    `on_other`, documents with neither kind nor version in a directory are left out, and it is
    called with the place of each.

    Kinds in `decode.KINDS` are also decoded and checked. Raises DecodeError, whose message names
    the document; of several in a file, also the line in which it begins. Given `on_refused`, single
    objects that are not valid are left out, and it is called with the message of each.
    """
    documents: list[Document] = []
    with collector.paused():
        for name, raw, is_named in _read_all(paths, stdin):
            for number, value in enumerate(_parse(name, raw, keeps_deep=True), start=1):
                # A document without content is what `---` at the end of a file leaves.
                if value is None:
                    continue
                value, source = _with_kind(name, value), f"{name}#{number}"
                if on_other is not None and not is_named and not _claims_to_be_object(value):
                    on_other(source)
                    continue
                try:
                    documents += _objects_of(value, source, on_refused)
                except DecodeError as error:
                    line = _line_text(raw, number)
                    raise DecodeError(f"{error}{line}") from error
    return documents


def documents_in(raw: bytes, *, name: str) -> list[Document]:
    """All objects in a text, as `load_documents` reads those of a file of this name."""
    documents: list[Document] = []
    for number, value in enumerate(_parse(name, raw, keeps_deep=True), start=1):
        if value is None:
            continue
        try:
            documents += _objects_of(value, f"{name}#{number}")
        except DecodeError as error:
            raise DecodeError(f"{error}{_line_text(raw, number)}") from error
    return documents


def _objects_of(
    value: object, source: str, on_refused: Callable[[str], None] | None = None
) -> list[Document]:
    documents: list[Document] = []
    for document in _flatten(value, source):
        try:
            check_document(document)
        except DecodeError as error:
            if on_refused is None:
                raise
            on_refused(str(error))
        else:
            documents.append(document)
    return documents


def _line_text(raw: bytes, number: int) -> str:
    """Where a document of several in a file begins; empty for the first, and in JSON."""
    if number == 1:
        return ""
    try:
        node, _ = next(itertools.islice(yaml_nodes(raw), number - 1, None))
    except YamlSizeError:  # lines of a large document are not worth its nodes
        return ""
    return f" (in the document from line {node.start_mark.line + 1})"


# --- Files to bytes ---------------------------------------------------------------------------


def _read_all(
    paths: Iterable[str | Path], stdin: BinaryIO | None
) -> Iterator[tuple[str, bytes, bool]]:
    """The name and content of every file, and whether it was named itself."""
    total = TotalSize()
    for given in paths:
        if str(given) == STDIN:
            raw = read_stream(stdin or sys.stdin.buffer, "standard input")
            yield "standard input", total.counted(_unpack("standard input", raw)), True
            continue
        is_named = not os.path.isdir(given)
        for path in _files_at(Path(given)):
            try:
                raw = read_file(path)
            except OSError as error:
                raise DecodeError(f'cannot read "{path}": {error.strerror}') from error
            yield str(path), total.counted(_unpack(str(path), raw)), is_named


def _files_at(path: Path) -> list[Path]:
    if not os.path.isdir(path):  # unlike `Path.is_dir`, also for a name that is too long
        return [path]
    files = sorted(file for file in files_below(path) if _is_manifest(file) and file.is_file())
    if not files:
        raise DecodeError(f'directory "{path}" holds no {", ".join(_SUFFIXES)} file')
    return files


def _is_manifest(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(_SUFFIXES)


def _unpack(name: str, raw: bytes) -> bytes:
    try:
        return unpacked(raw, name).removeprefix(_UTF8_BOM)
    except DamagedError as error:
        raise DecodeError(f'cannot unpack "{name}": {error}; create the file again') from error


# --- Bytes to documents -----------------------------------------------------------------------


def parse_document(raw: bytes, *, name: str, repeated: list[str] | None = None) -> object:
    """The one value in a JSON or YAML text, None if it is empty; `name` is used in errors.

    Keys that a YAML map has twice are refused, or, given a list, added to it with their lines.
    """
    values = [value for value in _parse(name, raw, repeated) if value is not None]
    if len(values) > 1:
        raise DecodeError(f'cannot read "{name}": found {len(values)} documents, expected one')
    return values[0] if values else None


def _parse(
    name: str, raw: bytes, repeated: list[str] | None = None, *, keeps_deep: bool = False
) -> list[object]:
    """The documents of a file. With `keeps_deep`, JSON that is nested too deeply stays text
    (`deep_json`)."""
    is_json = name.removesuffix(".gz").endswith(".json")
    try:
        if is_json or raw.lstrip().startswith(b"{"):
            try:
                accepts_repeated = repeated is not None
                return [_parse_json(name, raw, accepts_repeated, keeps_deep)]
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                # Braces may also be YAML, whose error is then the right one.
                if is_json:
                    raise DecodeError(
                        f'cannot read "{name}": {_json_problem(raw, error)}'
                    ) from error
        return _parse_yaml(raw, repeated)
    except RecursionError as error:
        raise DecodeError(
            f'cannot read "{name}": it is nested more than {LEVELS_MAX} levels deep'
        ) from error
    except yaml.YAMLError as error:
        hint = _HELM_HINT if b"{{" in raw else ""
        raise DecodeError(f'cannot read "{name}": {_yaml_problem(error)}{hint}') from error


def _parse_json(name: str, raw: bytes, accepts_repeated: bool, keeps_deep: bool) -> object:
    deep: DeepJson | None = None
    value, extent = _decoded(raw)
    if extent.levels > LEVELS_MAX and not keeps_deep:
        raise DecodeError(f'cannot read "{name}": it is nested more than {LEVELS_MAX} levels deep')
    if extent.levels > LEVELS_MAX:
        deep = DeepJson(raw)
        raw = deep.text
        value, extent = _decoded(raw)
    duplicate = None if accepts_repeated else duplicate_key(raw, extent.key_count)
    if duplicate is not None:
        before = raw[: duplicate.offset]
        place = _place_after(before if deep is None else deep.restored(before))
        raise DecodeError(
            f'cannot read "{name}": {place}: the key {quoted(duplicate.key)} is given twice; '
            "remove one of them"
        )
    return value if deep is None else deep.document()


def _decoded(raw: bytes) -> tuple[object, Extent]:
    try:
        value: object = msgspec.json.decode(raw)
    except RecursionError:
        return None, Extent(0, LEVELS_MAX + 1)
    return value, extent_of(value)


def _json_problem(raw: bytes, error: Exception) -> str:
    if not raw.strip():
        return "the file is empty, expected a JSON document"
    if "truncated" in str(error):
        line = raw.count(b"\n") + 1
        return f"the text ends in the middle of the document, in line {line}; is the file complete?"
    found = re.search(r"(.*) \(byte (\d+)\)", str(error))
    if found is None:
        return f"not JSON: {error}"
    return f"{_place(raw, int(found[2]))}: {found[1]}"


def _place(raw: bytes, offset: int) -> str:
    return _place_after(raw[:offset])


def _place_after(before: bytes) -> str:
    line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
    return f"line {line}, column {column}"


def _yaml_problem(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        context = f" {error.context}" if error.context else ""
        return f"line {mark.line + 1}, column {mark.column + 1}:{context} {error.problem}"
    return " ".join(str(error).split())


# --- YAML -------------------------------------------------------------------------------------


def _parse_yaml(raw: bytes, repeated: list[str] | None) -> list[object]:
    plain = plain_values(raw)
    if plain is not None:
        return plain
    documents: list[object] = []
    for node, loader in yaml_nodes(raw):
        _check_keys(node, done=set(), repeated=repeated)
        documents.append(value_of(node, loader))
    return documents


def _check_keys(node: yaml.Node, *, done: set[int], repeated: list[str] | None) -> None:
    """Make every key a text; refuse keys given twice, or collect their lines."""
    if isinstance(node, yaml.ScalarNode) or id(node) in done:
        return
    done.add(id(node))
    is_map = isinstance(node, yaml.MappingNode)
    children = _values_of_map(node, repeated) if is_map else node.value
    for child in children:
        _check_keys(child, done=done, repeated=repeated)


def _values_of_map(node: yaml.MappingNode, repeated: list[str] | None) -> list[yaml.Node]:
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _problem("expected a text as key", key)
        if key.value in seen and repeated is not None:
            line = key.start_mark.line + 1
            repeated.append(f'line {line}: key "{key.value}" already set in map')
        elif key.value in seen:
            raise _problem(f"the key {quoted(key.value)} is given twice; remove one of them", key)
        seen.add(key.value)
        if key.tag != f"{TAG}merge":
            key.tag = f"{TAG}str"
    return [value for _, value in node.value]


def _problem(text: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=text, problem_mark=node.start_mark)


# --- Documents to objects ---------------------------------------------------------------------


def _with_kind(name: str, value: object) -> object:
    """The document, with the kind that kustomize's own files may leave out."""
    if is_map(value) and "kind" not in value and Path(name).name in _KUSTOMIZATIONS:
        return _KUSTOMIZATION_TYPE | value
    return value


def _claims_to_be_object(value: object) -> bool:
    return is_map(value) and ("kind" in value or "apiVersion" in value)


def _flatten(value: object, source: str) -> Iterator[Document]:
    """The document itself, or the items of a list (`kind: List`, `kind: PodList`, …)."""
    if not is_map(value):
        # Of a text nothing is shown: a file that a scenario or test names may be any, a token too.
        found = "a text" if isinstance(value, str) else quoted(value)
        raise DecodeError(f"{source}: found {found}, expected a Kubernetes object")
    kind = value.get("kind")
    if not isinstance(kind, str) or not kind:
        hint = _HELM_HINT if Path(source.partition("#")[0]).name in _CHART_FILES else ""
        raise DecodeError(f'{source}: has no "kind", expected a Kubernetes object{hint}')
    if not (kind.endswith("List") and "items" in value):
        yield Document(raw=value, source=source)
        return
    items: object = value["items"] or []
    if not is_list(items):
        raise DecodeError(f"{source}: items is {quoted(items)}, expected a list")
    for index, item in enumerate(items):
        # The API server leaves out kind and version, which follow from the list's own.
        typed = _list_type(value) | item if kind != "List" and is_map(item) else item
        yield from _flatten(typed, f"{source}.items[{index}]")


def _list_type(value: JsonObject) -> JsonObject:
    api_version = {"apiVersion": value["apiVersion"]} if "apiVersion" in value else {}
    return api_version | {"kind": value["kind"].removesuffix("List")}


def check_document(document: Document) -> None:
    """Raise DecodeError for a document that is no valid object of its kind."""
    cls = class_of(document.raw)
    try:
        # Of other kinds the metadata must be valid; some, as configuration files, have none.
        obj = convert(cls or ApiObject, document.raw)
        # What was read from a server, which has a UID, was validated there.
        if cls is not None and not obj.metadata.uid:
            check_object(obj)
        if document.raw["kind"] in OWNERS_OF_PODS:
            check_counts(document.raw)
    except DecodeError as error:
        raise DecodeError(f"{document.source}: {error}") from error
