"""Positions in texts: which are allowed, and what the ends give."""

import pytest

from kubestow.cel import CelError, Environment, Value

ENVIRONMENT = Environment({})
RULE, AN_INT, A_TEXT, A_BOOL = (
    "error during formatting:", "was given int", "was given string", "was given bool"
)  # fmt: skip


def evaluate(expression: str) -> Value:
    return ENVIRONMENT.compile(expression).evaluate({})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'abc'.charAt(0)", "a"),
        ("'abc'.charAt(3)", ""),
        ("'abc'.indexOf('c', 2)", 2),
        ("'abc'.indexOf('a', 3)", -1),
        ("'abc'.indexOf('a', 9)", -1),
        ("'abc'.indexOf('', 9)", 9),
        ("'abc'.indexOf('')", 0),
        ("'abc'.lastIndexOf('')", 3),
        ("'abcabc'.lastIndexOf('abc', 2)", 0),
        ("'abcabc'.lastIndexOf('abc', 3)", 3),
        ("'abcabc'.lastIndexOf('abc', 5)", 3),
        ("'abcabc'.lastIndexOf('abc', 6)", -1),
        ("'abcabc'.lastIndexOf('a', 0)", 0),
        ("'abc'.lastIndexOf('', 9)", 9),
        ("'abc'.substring(3)", ""),
        ("'abc'.substring(0, 3)", "abc"),
        ("'abc'.substring(2, 2)", ""),
        ("'a,b,c'.split(',', 0)", ()),
        ("'a,b,c'.split(',', 1)", ("a,b,c",)),
        ("'a,b,c'.split(',', 3)", ("a", "b", "c")),
        ("'a,b,c'.split(',', -1)", ("a", "b", "c")),
        ("'abc'.split('', 1)", ("abc",)),
        ("'abc'.split('', 3)", ("a", "b", "c")),
        ("'abc'.split('', 4)", ("a", "b", "c")),
        ("'abc'.split('', -1)", ("a", "b", "c")),
        ("'aaa'.replace('a', 'b', 0)", "aaa"),
        ("'aaa'.replace('a', 'b', -1)", "bbb"),
        ("'aaa'.replace('a', 'b')", "bbb"),
        ("strings.quote('\\a\\b\\f\\r\\t\\v\\\\')", r'"\a\b\f\r\t\v\\"'),
    ],
)
def test_positions_have_the_value(expression: str, value: Value) -> None:
    assert evaluate(expression) == value


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("'abc'.charAt(-1)", "index out of range: -1"),
        ("'abc'.charAt(4)", "index out of range: 4"),
        ("'abc'.indexOf('a', -1)", "index out of range: -1"),
        ("'abc'.lastIndexOf('a', -1)", "index out of range: -1"),
        ("'abc'.substring(-1)", "index out of range: -1"),
        ("'abc'.substring(4)", "index out of range: 4"),
        ("'abc'.substring(1, 4)", "index out of range: 4"),
        ("'abc'.substring(-1, 2)", "index out of range: -1"),
        ("'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1"),
        ("'abc'.substring(9, 1)", "invalid substring range. start: 9, end: 1"),
    ],
)
def test_positions_outside_are_errors(expression: str, error: str) -> None:
    with pytest.raises(CelError) as caught:
        evaluate(expression)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'%f'.format([1.0])", "1.000000"),
        ("'%s'.format([1, 2])", "1"),
        ("'%.0f'.format([1.4])", "1"),
        ("'%.3e'.format([12.0])", "1.200e+01"),
        ("'%d %d'.format([-1, 2u])", "-1 2"),
        ("'%b %b'.format([5u, true])", "101 1"),
        ("'%o'.format([8u])", "10"),
        ("'%x %X'.format([255u, 255])", "ff FF"),
        ("'%x %X'.format([b'\\xff', 'j'])", "ff 6A"),
        ("'%s %s'.format([null, int])", "null int"),
        ("'%s'.format([{'b': dyn(1), 'a': [2]}])", "{a: [2], b: 1}"),
        ("'%s %s'.format([duration('1s'), timestamp(0)])", "1s 1970-01-01T00:00:00Z"),
        ("'%%'.format([])", "%"),
    ],
)
def test_verbs_write_values(expression: str, value: Value) -> None:
    assert evaluate(expression) == value


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("'%s'.format([])", "index 0 out of range"),
        ("'%s %s'.format([1])", "index 1 out of range"),
        ("'%d'.format(['a'])", f"{RULE} decimal clause can only be used on integers, {A_TEXT}"),
        ("'%d'.format([true])", f"{RULE} decimal clause can only be used on integers, {A_BOOL}"),
        ("'%f'.format(['a'])", f"{RULE} fixed-point clause can only be used on doubles, {A_TEXT}"),
        ("'%f'.format([1])", f"{RULE} fixed-point clause can only be used on doubles, {AN_INT}"),
        ("'%e'.format([1])", f"{RULE} scientific clause can only be used on doubles, {AN_INT}"),
        ("'%o'.format([true])", f"{RULE} octal clause can only be used on integers, {A_BOOL}"),
        (
            "'%X'.format([true])",
            f"{RULE} only integers, byte buffers, and strings can be formatted as hex, {A_BOOL}",
        ),
        (
            "'%b'.format(['a'])",
            f"{RULE} only integers and bools can be formatted as binary, {A_TEXT}",
        ),
        (
            "'%s'.format([optional.of(1)])",
            f"{RULE} string clause can only be used on strings, bools, bytes, ints, doubles, maps,"
            " lists, types, durations, and timestamps, was given optional_type",
        ),
        (
            "'%z'.format([1])",
            'could not parse formatting clause: unrecognized formatting clause "z"',
        ),
    ],
)
def test_verbs_that_do_not_fit_are_errors(expression: str, error: str) -> None:
    with pytest.raises(CelError) as caught:
        evaluate(expression)
    assert str(caught.value) == error
