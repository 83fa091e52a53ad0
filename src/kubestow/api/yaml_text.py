"""YAML as it is read everywhere: manifests, configuration, kubeconfig, bodies of requests.

Scalars are read as kubectl reads them, and only values that JSON has come out. A short text can
stand for an enormous value: aliases repeat what they name, level upon level, and libyaml's time
grows with the square of the depth. So the events of a text are checked before anything is built,
or, where a text has nothing but maps, lists and scalars, built while they are read.

Not here: keys given twice, which are an error in manifests (`files`) and are collected in
configuration (`config.documents`).
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from sys import intern
from typing import Any, Final

import yaml

LEVELS_MAX: Final = 150  # manifests have about 20, schemas in a CustomResourceDefinition about 60
REPEATED_VALUES_MAX: Final = 100_000  # by the aliases of one document together
# Of one document that is read as nodes, which take some 400 bytes each.
NODES_PER_DOCUMENT: Final = 1_000_000
_CONSTRUCTED_MAX: Final = 4_096  # numbers, booleans and nulls whose values are kept

TAG: Final = "tag:yaml.org,2002:"
_KEPT_TAGS: Final = (f"{TAG}bool", f"{TAG}merge", f"{TAG}null")
_JSON_TAGS: Final = tuple(f"{TAG}{name}" for name in ("bool", "float", "int", "map", "null", "seq"))
_MAP: Final = frozenset({dict})  # the type of maps while they are built
_INT: Final = re.compile(r"[-+]?(0b[01_]+|0[0-7_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*)$")
_FLOAT: Final = re.compile(r"[-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+][0-9]+)?$")


def _resolvers(first: str) -> list[tuple[str, re.Pattern[str]]]:
    """What a plain scalar that begins with this character may be besides text."""
    inherited = yaml.CSafeLoader.yaml_implicit_resolvers.get(first, [])
    kept = [(tag, pattern) for tag, pattern in inherited if tag in _KEPT_TAGS]
    if first and first in "-+.0123456789":
        kept += [(f"{TAG}int", _INT), (f"{TAG}float", _FLOAT)]
    return kept


def _constructors() -> dict[Any, Any]:
    """The constructors of the types that JSON has, and one that reports all other tags."""
    kept = (*_JSON_TAGS, f"{TAG}str", None)
    return {tag: yaml.CSafeLoader.yaml_constructors[tag] for tag in kept}


class YamlLoader(yaml.CSafeLoader):
    """YAML 1.1 without times, base-60 numbers (`12:30`), `=` and the tags that JSON lacks."""

    yaml_implicit_resolvers = {
        first: _resolvers(first) for first in yaml.CSafeLoader.yaml_implicit_resolvers
    }
    yaml_constructors = _constructors()


_CONSTRUCTOR: Final = YamlLoader("")  # for the methods that make values of scalars


class YamlSizeError(yaml.MarkedYAMLError):
    """YAML that stands for too much; the problem quotes nothing of the text."""


def yaml_nodes(raw: bytes | str) -> Iterator[tuple[yaml.Node, Any]]:
    """The documents of a text as nodes, each with the loader for `value_of`.

    Raises yaml.YAMLError, with the line, also for what is nested too deeply, repeated too often or
    has too many values.
    """
    _check_size(raw)
    loader: Any = YamlLoader(raw)  # PyYAML's types lack the methods that build the objects
    try:
        while loader.check_node():
            yield loader.get_node(), loader
    finally:
        loader.dispose()


def plain_values(raw: bytes | str) -> list[object] | None:
    """The documents of a text, in a third of the time that nodes take; None if it needs nodes.

    It does for anchors, aliases, tags, merge keys and every error, also a key that a map has twice:
    nodes know the lines that errors name.
    """
    documents: list[object] = []
    containers: list[Any] = [documents]  # those that are open, each in the one before
    container: Any = documents
    key: str | None = None  # of the value to come in a map
    loader: Any = YamlLoader(raw)
    try:
        while True:
            event = loader.get_event()
            kind = event.__class__
            if kind is yaml.ScalarEvent:
                if event.tag is not None or event.anchor is not None:
                    return None
                value: Any = event.value
                if key is None and type(container) in _MAP:
                    if value in container or value == "<<":
                        return None
                    key = intern(value)
                    continue
                if event.implicit[0]:
                    value = _plain_scalar(value)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                if event.tag is not None or event.anchor is not None:
                    return None
                value = {} if kind is yaml.MappingStartEvent else []
                containers.append(value)
                if len(containers) > LEVELS_MAX + 1:
                    return None
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                containers.pop()
                container = containers[-1]
                continue
            elif kind is yaml.StreamEndEvent:
                return documents
            elif kind is yaml.AliasEvent:
                return None
            else:
                continue
            if key is not None:
                container[key] = value
                key = None
            elif type(container) in _MAP:  # A map or a list as key.
                return None
            else:
                container.append(value)
            if kind is not yaml.ScalarEvent:
                container = value
    except (yaml.YAMLError, ArithmeticError, LookupError, ValueError):
        return None
    finally:
        loader.dispose()


def _plain_scalar(text: str) -> object:
    """The value of a scalar without quotes."""
    for tag, pattern in YamlLoader.yaml_implicit_resolvers.get(text[:1], ()):
        if pattern.match(text):
            return _constructed(tag, text)
    return text


@lru_cache(maxsize=_CONSTRUCTED_MAX)
def _constructed(tag: str, text: str) -> object:
    return YamlLoader.yaml_constructors[tag](_CONSTRUCTOR, yaml.ScalarNode(tag, text))


def value_of(node: yaml.Node, loader: Any) -> object:
    """The value of a document: maps, lists, texts, numbers, booleans and None."""
    try:
        return loader.construct_document(node)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # PyYAML's constructors take a scalar for what its tag says: `!!int x`, `!!bool maybe`.
        problem = "a number is too long, or a value does not fit its tag (!!int, !!bool, …)"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from error


def _check_size(raw: bytes | str) -> None:
    """Refuse what is nested too deeply, repeated too often, or contains itself."""
    sizes: dict[str, int] = {}  # values by anchor
    open_values: list[tuple[str | None, int]] = []  # anchor, and the count when it began
    count = repeated = nodes = 0
    parse: Any = getattr(yaml, "parse")  # noqa: B009 - it has no types
    for event in parse(raw, Loader=YamlLoader):
        match event:
            case yaml.DocumentStartEvent():
                sizes.clear()
                repeated = nodes = 0
            case yaml.AliasEvent():
                if any(event.anchor == anchor for anchor, _ in open_values):
                    raise _problem("an alias must not contain itself", event)
                size = sizes.get(event.anchor, 0)
                count += size
                repeated += size
                if repeated > REPEATED_VALUES_MAX:
                    problem = f"the aliases repeat more than {REPEATED_VALUES_MAX} values"
                    raise _problem(f"{problem}; write them out, or use fewer", event)
            case yaml.ScalarEvent():
                count += 1
                nodes += 1
                if event.anchor is not None:
                    sizes[event.anchor] = 1
            case yaml.CollectionStartEvent():
                if len(open_values) == LEVELS_MAX:
                    raise _problem(f"nested more than {LEVELS_MAX} levels deep", event)
                open_values.append((event.anchor, count))
                count += 1
                nodes += 1
            case yaml.CollectionEndEvent():
                anchor, before = open_values.pop()
                if anchor is not None:
                    sizes[anchor] = count - before
            case _:
                pass
        if nodes > NODES_PER_DOCUMENT:
            problem = f"more than {NODES_PER_DOCUMENT:,} values in one document"
            raise _problem(f"{problem} with anchors, tags or mistakes; write it as JSON", event)


def _problem(text: str, event: yaml.Event) -> YamlSizeError:
    return YamlSizeError(problem=text, problem_mark=event.start_mark)
