"""Operators at the ends of their ranges, and on values of mixed types."""

import pytest

from kubestow.cel import CelError, Environment, Value

ENVIRONMENT = Environment({})


def evaluate(expression: str) -> Value:
    return ENVIRONMENT.compile(expression).evaluate({})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("9223372036854775806 + 1", 9223372036854775807),
        ("-9223372036854775807 - 1", -9223372036854775808),
        ("18446744073709551614u + 1u == 18446744073709551615u", True),
        ("1u - 1u == 0u", True),
        ("3037000499 * 3037000499", 9223372030926249001),
        ("7 / -2", -3),
        ("-7 / -2", 3),
        ("0 / 5", 0),
        ("-8 % 3", -2),
        ("8 % -3", 2),
        ("7u / 2u == 3u && 7u % 2u == 1u", True),
        ("1.0 / -0.0 < 0.0", True),
        ("-1.0 / 0.0 < 0.0", True),
        ("0.0 / 0.0 == 0.0 / 0.0", False),
        ("3.0 / 2.0", 1.5),
        ("2.0 - 0.5", 1.5),
        ("2.0 * 1.5", 3.0),
        ("-(1.5)", -1.5),
        ("b'a' + b'b' == b'ab'", True),
        ("timestamp(1) - duration('1s') == timestamp(0)", True),
        ("duration('1s') + timestamp(1) == timestamp(2)", True),
        ("duration('2s') - duration('500ms') == duration('1500ms')", True),
        ("int(duration(-9223372036854775807) - duration(1))", -(2**63)),
        ("int(duration(9223372036854775806) + duration(1))", 2**63 - 1),
        ("1 <= 1 && 1 >= 1 && !(1 < 1) && !(1 > 1)", True),
        ("1 < 2u && 2.5 > 2 && 2u >= 2.0", True),
        ("duration('1s') < duration('2s') && timestamp(1) > timestamp(0) && b'a' < b'b'", True),
        ("[1] == [1, 2]", False),
        ("[1, 2] == [1, 3]", False),
        ("{'a': 1} == {'b': 1}", False),
        ("{'a': 1} == {'a': 2}", False),
        ("{true: 1} == {true: 1}", True),
        ("optional.of(1) == optional.none()", False),
        ("optional.of(1) == optional.of(2)", False),
        ("optional.none() == optional.none()", True),
        ("dyn(1) == dyn('a')", False),
        ("dyn(1) == dyn(true)", False),
        ("type(1) == type(2) && type(1) != type('a')", True),
        ("dyn(1) in [dyn(1u)]", True),
        ("3 in [1, 2]", False),
        ("1 in {1: 2} && !(2 in {1: 2})", True),
        ("true in {true: 2}", True),
        ("[1, 2][0]", 1),
        ("[1, 2][1]", 2),
        ("[1, 2][dyn(1.0)]", 2),
        ("[1, 2][dyn(1u)]", 2),
        ("{1: 'a'}[dyn(1.0)]", "a"),
        ("[1, 2][?1].value()", 2),
        ("[1, 2][?2].hasValue()", False),
        ("[1, 2][?-1].hasValue()", False),
        ("optional.of([1])[0].value()", 1),
        ("optional.of([1])[?1].hasValue()", False),
        ("optional.none()[?1].hasValue()", False),
        ("optional.of({'a': 1})['a'].value()", 1),
        ("has({'a': {}}.a.b)", False),
        ("has(dyn('text').a)", False),
    ],
)
def test_operations_have_the_value(expression: str, value: Value) -> None:
    result = evaluate(expression)
    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("9223372036854775807 + 1", "integer overflow"),
        ("-9223372036854775808 - 1", "integer overflow"),
        ("-(-9223372036854775808)", "integer overflow"),
        ("-9223372036854775808 / -1", "integer overflow"),
        ("3037000500 * 3037000500", "integer overflow"),
        ("18446744073709551615u + 1u", "unsigned integer overflow"),
        ("0u - 1u", "unsigned integer overflow"),
        ("1u / 0u", "division by zero"),
        ("1u % 0u", "modulus by zero"),
        ("timestamp(-62135596800) - duration('1s')", "timestamp overflow"),
        ("duration('-2562047h') - duration('1h')", "duration overflow"),
        ("timestamp(253402300799) - timestamp(-62135596800)", "duration overflow"),
        ("duration(-9223372036854775807) - duration(2)", "duration overflow"),
        ("1.0 < double('nan')", "NaN values cannot be ordered"),
        ("[1, 2][2]", "index out of bounds: 2"),
        ("[1, 2][-1]", "index out of bounds: -1"),
        ("[1][dyn('a')]", "unsupported index type 'string' in list"),
        ("[1][dyn(9223372036854775808u)]", "unsupported index value 9223372036854775808 in list"),
        ("{true: 1}[false]", "no such key: false"),
        ("dyn('a') - dyn('b')", "no such overload"),
        ("dyn(1) + dyn(1u)", "no such overload"),
        ("dyn('a') < dyn(b'a')", "no such overload"),
    ],
)
def test_operations_end_with_the_error(expression: str, error: str) -> None:
    with pytest.raises(CelError) as caught:
        evaluate(expression)
    assert str(caught.value) == error
