"""Values built while a text is read equal those built from its nodes, or nodes are asked for."""

from typing import Any, cast

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api import yaml_text
from kubestow.api.yaml_text import (
    LEVELS_MAX,
    YamlSizeError,
    plain_values,
    value_of,
    yaml_nodes,
)

PLAIN = [
    "",
    "---\n---\n",
    "a: 1\n---\nb: 2\n...\n",
    "# only a comment\n",
    "a:\nb: ~\nc: null\nd: ''\n",
    "a: [yes, no, on, off, true, False, y, n, 'yes']\n",
    "a: [0x1F, 0b11, 017, 1_000, -1, +1, 1.5, .5, 1., 1e3, 1.0e+3, 08, -, +, ., 1:30]\n",
    "a: [.inf, -.inf, .nan, 2026-01-01, 2026-01-01T00:00:00Z, =, '=', '<<']\n",
    "1: one\ntrue: two\nnull: three\n1.5: four\n",
    'a: |\n  text\n  more\nb: >-\n  folded\n  text\nc: "\\u00e9\\n"\n',
    "- {a: {b: [c, {d: e}]}}\n-\n  - - x\n",
    "plain text\n",
    "a: node-1\nb: true-ish\nc: 100m\nd: 1Gi\ne: 0644\n",
]
WITH_NODES = [
    "a: &x 1\nb: *x\n",
    "a: &x {b: 1}\n",
    "a: !!str 1\n",
    "!!map {a: 1}\n",
    "a: {<<: {b: 1}}\n",
    "? [a]\n: b\n",
    "? {a: b}\n: c\n",
    "a: 1\na: 2\n",
    "a: <<\n",
    "a: [1\n",
    "a: 0b_\n",
    "a: \x00\n",
    "[" * (LEVELS_MAX + 1) + "]" * (LEVELS_MAX + 1),
]


def from_nodes(text: str) -> list[object]:
    values: list[object] = []
    for node, loader in yaml_nodes(text):
        texts(node)
        values.append(value_of(node, loader))
    return values


def texts(node: Any) -> None:
    """Make every key a text, as the readers of nodes do."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            key.tag = "tag:yaml.org,2002:str"
            texts(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            texts(item)


@pytest.mark.parametrize("text", PLAIN)
def test_plain_texts_have_the_values_of_their_nodes(text: str) -> None:
    # Their representations, because NaN equals nothing and True equals 1.
    assert repr(plain_values(text)) == repr(from_nodes(text))


@pytest.mark.parametrize("text", WITH_NODES)
def test_other_texts_need_nodes(text: str) -> None:
    assert plain_values(text) is None


def test_the_deepest_value_allowed_is_plain() -> None:
    text = "[" * LEVELS_MAX + "]" * LEVELS_MAX
    assert repr(plain_values(text)) == repr([yaml.safe_load(text)])


scalars = st.one_of(
    st.text(max_size=8),
    st.text("0123456789abcdefxo+-._:~ =<y", max_size=5),
    st.integers(),
    st.booleans(),
    st.none(),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=10,
)


@given(values, st.booleans())
def test_written_values_come_back(value: object, is_flow: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=is_flow, allow_unicode=True)
    plain = plain_values(text)
    if plain is not None:
        assert repr(plain) == repr(from_nodes(text))
    else:
        assert any(mark in text for mark in ("&", "*", "!", "<<", "?"))


@given(st.text("ab01-:?[]{},&*!|>'\"#<~ \n", max_size=20))
def test_any_text_has_the_values_of_its_nodes(text: str) -> None:
    plain = plain_values(text)
    if plain is not None:
        assert repr(plain) == repr(from_nodes(text))


def test_a_document_of_many_values_is_read_without_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_text, "NODES_PER_DOCUMENT", 100)
    many = b"- a\n" * 101
    values = plain_values(many)
    assert values is not None
    assert len(cast(list[str], values[0])) == 101
    with pytest.raises(YamlSizeError, match="more than 100 values in one document with anchors"):
        list(yaml_nodes(b"- &x a\n" + many))
    with pytest.raises(YamlSizeError, match="more than 100 values"):
        list(yaml_nodes(b"- []\n" * 101))
    # Each document counts for itself.
    assert len(list(yaml_nodes((b"- a\n" * 60 + b"---\n") * 3))) == 4
