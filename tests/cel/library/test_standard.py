"""Conversions and times at the ends of their ranges."""

import pytest

from kubestow.cel import CelError, Environment, Value
from kubestow.cel.values import UInt

ENVIRONMENT = Environment({})


def evaluate(expression: str) -> Value:
    return ENVIRONMENT.compile(expression).evaluate({})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("int('9223372036854775807')", 9223372036854775807),
        ("int('-9223372036854775808')", -9223372036854775808),
        ("int('+5')", 5),
        ("int('0')", 0),
        ("int('-0')", 0),
        ("int(9223372036854775807u)", 9223372036854775807),
        ("int(-1.9)", -1),
        ("int(9223372036854774784.0)", 9223372036854774784),
        ("int(-9223372036854774784.0)", -9223372036854774784),
        ("int(timestamp(7))", 7),
        ("int(timestamp('1969-12-31T23:59:59.5Z'))", -1),
        ("int(duration('1s'))", 1000000000),
        ("uint('18446744073709551615')", UInt(2**64 - 1)),
        ("uint('0')", UInt(0)),
        ("uint(0)", UInt(0)),
        ("uint(0.0)", UInt(0)),
        ("uint(1.9)", UInt(1)),
        ("uint(18446744073709549568.0)", UInt(18446744073709549568)),
        ("double(1)", 1.0),
        ("double(2u)", 2.0),
        ("double('.5')", 0.5),
        ("double('5.')", 5.0),
        ("double('-1e-2')", -0.01),
        ("bool('t')", True),
        ("bool('0')", False),
        ("string(1.5)", "1.5"),
        ("string(-1.5e-7)", "-0.00000015"),
        ("string(-1e21)", "-1000000000000000000000"),
        ("string(1.25e22)", "12500000000000000000000"),
        ("string(-0.0)", "-0"),
        ("string(0.0)", "0"),
        ("string(-2.0)", "-2"),
        ("string(1e-7)", "0.0000001"),
        ("string(double('inf'))", "+Inf"),
        ("string(double('-inf'))", "-Inf"),
        ("string(double('nan'))", "NaN"),
        ("string(false)", "false"),
        ("string(timestamp('2026-01-02T03:04:05.120Z'))", "2026-01-02T03:04:05.12Z"),
        ("string(timestamp(0))", "1970-01-01T00:00:00Z"),
        ("string(duration('-1500ms'))", "-1.5s"),
        ("timestamp('9999-12-31T23:59:59Z') == timestamp(253402300799)", True),
        ("timestamp('0001-01-01T00:00:00Z') == timestamp(-62135596800)", True),
        (
            "string(timestamp('2026-01-02T03:04:05.123456789987Z'))",
            "2026-01-02T03:04:05.123456789Z",
        ),
        ("timestamp('2024-12-31T03:04:05Z').getDayOfYear()", 365),
        ("timestamp('2024-01-01T03:04:05Z').getDayOfYear()", 0),
        ("timestamp('2024-12-31T03:04:05Z').getFullYear()", 2024),
        ("timestamp('2024-12-31T03:04:05Z').getMonth()", 11),
        ("timestamp('2024-12-31T03:04:05Z').getDate()", 31),
        ("timestamp('2024-12-31T03:04:05Z').getDayOfMonth()", 30),
        ("timestamp('2024-12-29T03:04:05Z').getDayOfWeek()", 0),
        ("timestamp('2024-12-28T03:04:05Z').getDayOfWeek()", 6),
        ("timestamp('2024-12-31T03:04:05Z').getHours()", 3),
        ("timestamp('2024-12-31T03:04:05Z').getMinutes()", 4),
        ("timestamp('2024-12-31T03:04:05Z').getSeconds()", 5),
        ("timestamp('2024-12-31T03:04:05.0789Z').getMilliseconds()", 78),
        ("timestamp(0).getHours('02:30')", 2),
        ("timestamp(0).getMinutes('02:30')", 30),
        ("timestamp(0).getMinutes('-02:15')", 45),
        ("timestamp(0).getHours('UTC')", 0),
        ("timestamp(0).getHours('')", 0),
        ("timestamp('2026-07-01T12:00:00Z').getHours('Europe/Berlin')", 14),
        ("duration('1h').getHours()", 1),
        ("duration('59m59s').getHours()", 0),
        ("duration('-90m').getHours()", -1),
        ("duration('1m').getMinutes()", 1),
        ("duration('59s').getMinutes()", 0),
        ("duration('1s').getSeconds()", 1),
        ("duration('999ms').getSeconds()", 0),
        ("duration('1500us').getMilliseconds()", 1),
        ("duration('-1s').getSeconds()", -1),
        ("duration(1) == duration('1ns')", True),
        (
            "type(null) == null_type && type([]) == list && type({}) == map && type(1u) == uint",
            True,
        ),
    ],
)
def test_conversions_have_the_value(expression: str, value: Value) -> None:
    result = evaluate(expression)
    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("int('-9223372036854775809')", "type conversion error from 'string' to 'int'"),
        ("int('1_0')", "type conversion error from 'string' to 'int'"),
        ("int('')", "type conversion error from 'string' to 'int'"),
        ("int('+-1')", "type conversion error from 'string' to 'int'"),
        ("int(9223372036854775808u)", "integer overflow"),
        ("int(9223372036854775808.0)", "integer overflow"),
        ("int(-9223372036854775808.0)", "integer overflow"),
        ("int(double('inf'))", "integer overflow"),
        ("uint('18446744073709551616')", "type conversion error from 'string' to 'uint'"),
        ("uint('-1')", "type conversion error from 'string' to 'uint'"),
        ("uint(-1)", "unsigned integer overflow"),
        ("uint(-1.0)", "unsigned integer overflow"),
        ("uint(18446744073709551616.0)", "unsigned integer overflow"),
        ("uint(double('nan'))", "unsigned integer overflow"),
        ("double('1_0')", "type conversion error from 'string' to 'double'"),
        ("double('')", "type conversion error from 'string' to 'double'"),
        ("bool('yes')", "type conversion error from 'string' to 'bool'"),
        ("string(b'\\xff')", "invalid UTF-8 in bytes, cannot convert to string"),
        (
            "timestamp('2026-02-29T00:00:00Z')",
            "type conversion error from 'string' to 'google.protobuf.Timestamp'",
        ),
        (
            "timestamp('2026-01-01')",
            "type conversion error from 'string' to 'google.protobuf.Timestamp'",
        ),
        ("timestamp(253402300800)", "timestamp overflow"),
        ("duration('1')", "type conversion error from 'string' to 'google.protobuf.Duration'"),
        ("timestamp(0).getHours('1:b')", 'strconv.Atoi: parsing "b": invalid syntax'),
        ("timestamp(0).getHours('No/Where')", "unknown time zone No/Where"),
        ("timestamp('9999-12-31T23:59:59Z').getHours('+01:00')", "timestamp overflow"),
    ],
)
def test_conversions_end_with_the_error(expression: str, error: str) -> None:
    with pytest.raises(CelError) as caught:
        evaluate(expression)
    assert str(caught.value) == error
