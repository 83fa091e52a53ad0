"""Versions and quantities at their limits."""

import pytest

from kubestow.cel import CelError, Environment, Value

ENVIRONMENT = Environment({})


def evaluate(expression: str) -> Value:
    return ENVIRONMENT.compile(expression).evaluate({})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("semver('1.2.18446744073709551615').major()", 1),
        ("isSemver('1.2.18446744073709551616')", False),
        ("isSemver('0.0.0')", True),
        ("isSemver('00.0.0')", False),
        ("isSemver('1.2.3-0')", True),
        ("isSemver('1.2.3-01')", False),
        ("isSemver('1.2.3-0a')", True),
        ("isSemver('1.2.3+01')", True),
        ("isSemver('1.2.3-')", False),
        ("isSemver('1.2.3+')", False),
        ("isSemver('1.2.3-a..b')", False),
        ("isSemver('1.2.3-a_b')", False),
        ("isSemver('1.2.3+a_b')", False),
        ("semver('1.2.3').compareTo(semver('1.2.4'))", -1),
        ("semver('1.2.3').compareTo(semver('1.2.3'))", 0),
        ("semver('1.3.0').compareTo(semver('1.2.9'))", 1),
        ("semver('1.2.3-a').isLessThan(semver('1.2.3'))", True),
        ("semver('1.2.3-a').isLessThan(semver('1.2.3-a.1'))", True),
        ("semver('1.2.3').isLessThan(semver('1.2.3'))", False),
        ("semver('1.2.3').isGreaterThan(semver('1.2.3'))", False),
        ("semver('1.2.3-9').isLessThan(semver('1.2.3-10'))", True),
        ("semver('v1', true) == semver('1.0.0')", True),
        ("semver('1.02.003-a', true) == semver('1.2.3-a')", True),
        ("semver('0.00.0', true) == semver('0.0.0')", True),
        ("isSemver('1.2-a', true)", False),
        ("isSemver('1.2.3.4', true)", False),
        ("isSemver('v1.2.3')", False),
        ("semver('1.2.3', false).patch()", 3),
        ("quantity('9223372036854775807').asInteger()", 9223372036854775807),
        ("quantity('9223372036854775808').isInteger()", False),
        ("quantity('-9223372036854775808').isInteger()", True),
        ("quantity('1000m').isInteger()", True),
        ("quantity('1001m').isInteger()", False),
        ("quantity('2').sub(quantity('500m')).asApproximateFloat()", 1.5),
        ("quantity('2').sub(1) == quantity('1')", True),
        ("quantity('2').add(1).asInteger()", 3),
        ("quantity('1').compareTo(quantity('2'))", -1),
        ("quantity('2').compareTo(quantity('1'))", 1),
        ("quantity('1').isGreaterThan(quantity('1'))", False),
        ("quantity('1').isLessThan(quantity('1'))", False),
        ("sign(quantity('5'))", 1),
        ("sign(quantity('0'))", 0),
        ("sign(quantity('-5'))", -1),
    ],
)
def test_versions_and_quantities_have_the_value(expression: str, value: Value) -> None:
    result = evaluate(expression)
    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("semver('')", "Version string empty"),
        ("semver('1.2.3-')", "Prerelease is empty"),
        ("semver('1.2.3+')", "Build meta data is empty"),
        ("semver('1.2.3-01')", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("semver('1.2.3-a_')", 'Invalid character(s) found in prerelease "a_"'),
        ("semver('1.2.3+a_')", 'Invalid character(s) found in build meta data "a_"'),
        (
            "semver('1.2.18446744073709551616')",
            'strconv.ParseUint: parsing "18446744073709551616": value out of range',
        ),
        ("semver('1.2', false)", "No Major.Minor.Patch elements found"),
        ("quantity('9223372036854775808').asInteger()", "cannot convert value to integer"),
    ],
)
def test_versions_and_quantities_end_with_the_error(expression: str, error: str) -> None:
    with pytest.raises(CelError) as caught:
        evaluate(expression)
    assert str(caught.value) == error
