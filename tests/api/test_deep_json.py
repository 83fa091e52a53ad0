"""JSON that stays text: opaque values, and nesting beyond what can be decoded."""

from collections.abc import Iterator
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.decode import convert, decode_json, encode_json, quoted, to_document
from kubestow.api.deep_json import LEVELS_KEPT, DeepJson, OpaqueJson, read_json
from kubestow.api.device import ResourceClaim
from kubestow.api.nested_spans import NestedSpans
from kubestow.api.pod import Pod
from kubestow.cluster.client import update_patch

SERVER_LEVELS = 9_995  # what an API server stores in managedFields
PARAMETER_LEVELS = 1_100  # in opaque parameters, within 10 KiB


def nested(levels: int, opening: bytes = b'{"a":', inner: bytes = b"1") -> bytes:
    closing = b"}" if opening.startswith(b"{") else b"]"
    return opening * levels + inner + closing * levels


def claim_text(parameters: bytes) -> bytes:
    config = b'[{"opaque":{"driver":"d","parameters":%s}}]' % parameters
    return b'{"metadata":{"name":"c"},"spec":{"devices":{"config":%s}}}' % config


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=20,
)


@given(json_values, st.integers(0, 2 * LEVELS_KEPT), st.sampled_from([b"[", b'{"\\"]":']))
def test_what_is_cut_out_can_be_put_back(value: object, levels: int, opening: bytes):
    inner = msgspec.json.encode(value)
    raw = b'{"shallow": [], "deep": %s , "next": {}}' % nested(levels, opening, inner)
    text = DeepJson(raw)
    assert text.restored(text.text) == raw
    assert _depth(msgspec.json.decode(text.text)) <= LEVELS_KEPT
    # With the raw parts encoded again, the value is the same.
    assert msgspec.json.decode(msgspec.json.encode(text.document())) == msgspec.json.decode(raw)


def _depth(value: object) -> int:
    if isinstance(value, dict):
        value = [*value.values()]
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


@given(json_values, st.integers(1, 9), st.integers(1, 4))
def test_pieces_of_a_text_give_the_spans_of_the_whole(value: object, piece: int, level: int):
    raw = msgspec.json.encode([value, {'"\\': ["\\\\", "[{", '\\"}']}])
    spans = NestedSpans(level)
    with patch("kubestow.api.nested_spans.PIECE_BYTES", piece):
        spans.read_all(raw)
    assert [msgspec.json.decode(raw[start:end]) for start, end in spans.spans] == [
        *_at_level(msgspec.json.decode(raw), level)
    ]
    assert spans.unfinished is None


def _at_level(value: object, level: int) -> Iterator[object]:
    """The lists and objects nested at a level, in their order."""
    if isinstance(value, list | dict):
        if level == 1:
            yield value
        else:
            for inner in value.values() if isinstance(value, dict) else value:
                yield from _at_level(inner, level - 1)


def test_a_string_like_a_mark_is_no_mark():
    deep = nested(200, b"[")
    mark = DeepJson(deep).text.strip(b"[]")
    text = DeepJson(b"[%s, %s]" % (mark, deep))
    document = text.document()
    assert isinstance(document, list)
    assert document[0] == msgspec.json.decode(mark)
    assert text.restored(text.text) == b"[%s, %s]" % (mark, deep)


@pytest.mark.parametrize("levels", [900, 980, 1_200, SERVER_LEVELS])
def test_fields_that_are_not_read_may_be_nested_deeply(levels: int):
    managed = b'[{"manager":"m","fieldsV1":%s}]' % nested(levels)
    raw = b'{"metadata":{"name":"p","managedFields":%s},"spec":{"nodeName":"n"}}' % managed
    assert decode_json(Pod, raw).spec.node_name == "n"


@pytest.mark.parametrize("levels", [10, 900, 960, 980, PARAMETER_LEVELS, 4_900])
def test_parameters_of_a_driver_are_passed_on_at_any_depth(levels: int):
    parameters = nested(levels, b'{"a":')
    claim = decode_json(ResourceClaim, claim_text(parameters))
    (config,) = claim.spec.devices.config
    assert config.opaque is not None
    assert config.opaque.parameters == OpaqueJson(parameters)
    assert parameters in encode_json(claim)
    # A document of it can be read as a claim again, compared, and sent as a patch.
    document = to_document(claim)
    assert convert(ResourceClaim, document) == claim
    assert to_document(claim) == document
    empty = decode_json(ResourceClaim, claim_text(b"{}"))
    assert parameters in msgspec.json.encode(update_patch(empty, claim))
    assert update_patch(claim, claim) == {}


def test_bytes_that_are_no_text_are_read_as_go_reads_them():
    assert read_json(b'{"a": "x\xffy"}') == {"a": "x\ufffdy"}
    assert decode_json(Pod, b'{"metadata": {"name": "\xff"}}').metadata.name == "\ufffd"


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"[" * 20_000, id="not-closed"),
        pytest.param(nested(20_000) + b"]", id="closed-twice"),
        pytest.param(b'{"a": ' + nested(20_000), id="cut-outside"),
    ],
)
def test_what_is_no_json_is_refused_at_any_depth(raw: bytes):
    with pytest.raises(msgspec.DecodeError):
        read_json(raw)


def test_only_the_beginning_of_a_value_is_made_for_an_error():
    bomb: list[object] = ["x"]
    for _ in range(60):
        bomb = [bomb, bomb]  # 2**60 values, were they all written
    assert quoted(bomb) == "[" * 61 + '"x"], ["x"]], [["x"…'
    circular: list[object] = []
    circular.append(circular)
    assert quoted(circular) == "[" * 80 + "…"
