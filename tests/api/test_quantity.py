"""Quantities: the worked examples of spec 01 §1 and exactness against fractions."""

from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.quantity import (
    FORMAT_ERROR,
    INT64_MAX,
    INT64_MIN,
    NUMERIC_ERROR,
    SUFFIX_ERROR,
    ZERO,
    Quantity,
    parse_quantity,
    wrap_int64,
)


@pytest.mark.parametrize(
    ("text", "value", "milli", "canonical"),
    [
        pytest.param("100m", 1, 100, "100m", id="Q1-milli"),
        pytest.param("0.1", 1, 100, "100m", id="Q2-fraction"),
        pytest.param("100.5m", 1, 101, "100500u", id="Q3-below-milli-rounds-up"),
        pytest.param("1500u", 1, 2, "1500u", id="Q4-micro"),
        pytest.param("1.5Gi", 1610612736, 1610612736000, "1536Mi", id="Q5-binary-fraction"),
        pytest.param("1.1Ki", 1127, 1126400, "1126400m", id="Q6-binary-not-whole"),
        pytest.param("129M", 129000000, 129000000000, "129M", id="Q7-decimal"),
        pytest.param("123Mi", 128974848, 128974848000, "123Mi", id="Q7-binary"),
        pytest.param("129e6", 129000000, 129000000000, "129e6", id="Q7-exponent"),
        pytest.param("0.0000000001", 1, 1, "1n", id="Q8-finer-than-nano"),
        pytest.param("0.5Ki", 512, 512000, "512", id="Q9-binary-below-1024"),
        pytest.param("9E", 9 * 10**18, 0, "9E", id="Q11-9E"),
        pytest.param("10E", 0, 0, "10E", id="Q11-10E"),
        pytest.param("8Ei", INT64_MAX, -1000, "9223372036854775807", id="Q11-8Ei-is-capped"),
        pytest.param(".", 0, 0, "0", id="Q12-dot-is-zero"),
    ],
)
def test_worked_examples(text: str, value: int, milli: int, canonical: str) -> None:
    quantity = parse_quantity(text)
    assert (quantity.value(), quantity.milli_value()) == (value, milli)
    assert str(quantity) == canonical


def test_a_sum_is_rounded_once() -> None:  # Q10
    total = parse_quantity("100500u") + parse_quantity("100500u")
    assert (total.value(), total.milli_value(), str(total)) == (1, 201, "201m")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", FORMAT_ERROR, id="Q12-empty"),
        pytest.param("1 ", FORMAT_ERROR, id="Q12-space"),
        pytest.param("1.2.3", FORMAT_ERROR, id="Q12-two-dots"),
        pytest.param("0x10", FORMAT_ERROR, id="Q12-hex"),
        pytest.param("1\n", FORMAT_ERROR, id="newline"),
        pytest.param("\u0661", FORMAT_ERROR, id="foreign-digit"),
        pytest.param("nan", FORMAT_ERROR, id="nan"),
        pytest.param("1e5x", FORMAT_ERROR, id="after-exponent"),
        pytest.param("1i", SUFFIX_ERROR, id="Q12-i"),
        pytest.param("1e", SUFFIX_ERROR, id="Q12-e"),
        pytest.param("1mi", SUFFIX_ERROR, id="Q12-mi"),
        pytest.param("1K", SUFFIX_ERROR, id="capital-K"),
        pytest.param("1Ki5", SUFFIX_ERROR, id="digits-after-binary"),
        pytest.param("+-5", SUFFIX_ERROR, id="two-signs"),
        pytest.param("1e99999999999999999999", SUFFIX_ERROR, id="exponent-over-64-bits"),
        pytest.param("1e5000", SUFFIX_ERROR, id="exponent-absurd"),
        pytest.param("1e4097", SUFFIX_ERROR, id="exponent-over-the-limit"),
        pytest.param(".Pi", NUMERIC_ERROR, id="Q12-dot-Pi"),
        pytest.param("Ei", NUMERIC_ERROR, id="Ei-alone"),
        pytest.param(".e-20", NUMERIC_ERROR, id="dot-below-nano"),
        pytest.param("9" * 5000, NUMERIC_ERROR, id="too-many-digits"),
    ],
)
def test_errors_have_the_exact_text(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 -- the whole text is compared below
        parse_quantity(text)
    assert str(caught.value) == message


def test_the_largest_exponent_is_read() -> None:
    assert parse_quantity("1e4096").nano == 10 ** (4096 + 9)


@pytest.mark.parametrize(
    ("suffix", "digits_max"),
    [("Ki", 11), ("Mi", 8), ("Gi", 5), ("Ti", 2)],
)
def test_so_many_digits_before_a_binary_suffix_have_the_64_bit_form(
    suffix: str, digits_max: int
) -> None:
    """Spec 01 §1.2."""
    assert parse_quantity("9" * digits_max + suffix).small_scale == 0
    assert parse_quantity("1" + "0" * digits_max + suffix).small_scale is None


@pytest.mark.parametrize("text", ["1Pi", "1Ei", "1.5Ki"])
def test_peta_and_exa_and_fractions_have_the_other_form(text: str) -> None:
    assert parse_quantity(text).small_scale is None


@pytest.mark.parametrize("text", ["+", "-", "Ki", "e5", "m", ".Ki", "-0", "0.0Pi"])
def test_the_scanner_reads_these_as_zero(text: str) -> None:
    assert parse_quantity(text) == ZERO
    assert str(parse_quantity(text)) == "0"


def test_a_long_text_costs_one_pass() -> None:
    # A scanner that backtracks would need hours for this.
    with pytest.raises(ValueError, match="regular expression"):
        parse_quantity("0" * 100_000 + "!")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        pytest.param(None, "0", id="null"),
        pytest.param(2, "2", id="int"),
        pytest.param(1.5, "1500m", id="float"),
        pytest.param(1e22, "10e21", id="large-float"),
        pytest.param(1e-7, "100e-9", id="small-float"),
    ],
)
def test_json_numbers_are_read_by_their_text(number: float | None, text: str) -> None:
    assert str(parse_quantity(number)) == text


def test_parsed_texts_are_interned() -> None:
    assert parse_quantity("250m") is parse_quantity("250m")


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        pytest.param("-1500u", -1, -2, id="small"),
        pytest.param("-1.5", -2, -1500, id="half"),
        pytest.param("-1.1Ki", -1127, -1126400, id="binary"),
    ],
)
def test_negative_quantities_round_away_from_zero(text: str, value: int, milli: int) -> None:
    assert (parse_quantity(text).value(), parse_quantity(text).milli_value()) == (value, milli)


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        # 64-bit form: one wrapping product at the distances 1, 2, 3, 6 and 9, otherwise 0.
        pytest.param(
            "99999999999999999k",
            wrap_int64(99999999999999999 * 10**3),
            wrap_int64(99999999999999999 * 10**6),
            id="distance-3-and-6",
        ),
        pytest.param("999999999999999999e4", 0, 0, id="distance-4-and-7"),
        # Arbitrary form: the low 64 bits.
        pytest.param(
            "9999999999999999999",
            wrap_int64(9999999999999999999),
            wrap_int64(9999999999999999999 * 10**3),
            id="nineteen-digits",
        ),
    ],
)
def test_out_of_range_conversions_do_not_saturate(text: str, value: int, milli: int) -> None:
    assert (parse_quantity(text).value(), parse_quantity(text).milli_value()) == (value, milli)


def test_a_sum_leaves_the_64_bit_form_when_its_mantissa_overflows() -> None:
    exa = parse_quantity("5E")
    assert (exa + exa).value() == 0  # still 10 * 10^18 in the 64-bit form
    long = parse_quantity("900000000000000000")  # 18 digits, scale 0
    total = long
    for _ in range(19):
        total += long
    assert total.value() == wrap_int64(20 * 900000000000000000)


def test_a_zero_takes_the_format_of_the_other_operand() -> None:
    assert str(parse_quantity("0") + parse_quantity("2Ki")) == "2Ki"
    assert str(parse_quantity("2Ki") + parse_quantity("2048")) == "4Ki"
    assert str(parse_quantity("2048") + parse_quantity("2Ki")) == "4096"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        pytest.param("1000", "1k", id="thousand"),
        pytest.param("10000000", "10M", id="ten-million"),
        pytest.param("1024", "1024", id="decimal-stays-decimal"),
        pytest.param("1024Ki", "1Mi", id="binary-reduces"),
        pytest.param("1023Ki", "1023Ki", id="binary-stays"),
        pytest.param("1e3", "1e3", id="exponent"),
        pytest.param("12e1", "120", id="exponent-zero"),
        pytest.param("5000E", "5000E", id="past-exa"),
        pytest.param("-2048Ki", "-2Mi", id="negative"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    assert str(parse_quantity(text)) == canonical


def test_equal_numbers_are_equal_however_written() -> None:
    assert parse_quantity("1") == parse_quantity("1000m")
    assert hash(parse_quantity("1")) == hash(parse_quantity("1000m"))
    assert parse_quantity("1Ki") > parse_quantity("1k")
    assert parse_quantity("1") != 1


def test_the_api_server_rounds_up_to_milli() -> None:
    assert str(parse_quantity("1500u").rounded_up_to_milli()) == "2m"
    whole = parse_quantity("1Gi")
    assert whole.rounded_up_to_milli() is whole


_SUFFIXES = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "e2": Fraction(100),
    "E-4": Fraction(1, 10**4), "Ki": Fraction(2**10), "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
}  # fmt: skip

numbers = st.from_regex(r"[+-]?[0-9]{1,6}(\.[0-9]{0,12})?", fullmatch=True)
texts = st.tuples(numbers, st.sampled_from(sorted(_SUFFIXES)))


def _exact(number: str, suffix: str) -> Fraction:
    """The number as a fraction, rounded away from zero to nano-units."""
    nano = Fraction(number) * _SUFFIXES[suffix] * 10**9
    return Fraction(_away_from_zero(nano), 10**9)


def _away_from_zero(number: Fraction) -> int:
    return ceil(number) if number > 0 else floor(number)


@given(texts)
def test_any_number_converts_as_its_fraction_does(parts: tuple[str, str]) -> None:
    quantity = parse_quantity("".join(parts))
    exact = _exact(*parts)
    assert quantity.value() == _away_from_zero(exact)
    assert quantity.milli_value() == _away_from_zero(exact * 1000)


@given(texts, texts)
def test_sums_and_order_are_exact(left: tuple[str, str], right: tuple[str, str]) -> None:
    a, b = parse_quantity("".join(left)), parse_quantity("".join(right))
    exact_a, exact_b = _exact(*left), _exact(*right)
    assert Fraction((a + b).nano, 10**9) == exact_a + exact_b
    assert (a < b, a <= b, a > b, a >= b, a == b) == (
        exact_a < exact_b,
        exact_a <= exact_b,
        exact_a > exact_b,
        exact_a >= exact_b,
        exact_a == exact_b,
    )


@given(texts)
def test_the_canonical_text_means_the_same_number(parts: tuple[str, str]) -> None:
    quantity = parse_quantity("".join(parts))
    again = parse_quantity(str(quantity))
    assert again == quantity
    assert str(again) == str(quantity)


@given(st.integers())
def test_wrapping_keeps_the_low_64_bits(number: int) -> None:
    wrapped = wrap_int64(number)
    assert INT64_MIN <= wrapped <= INT64_MAX
    assert (wrapped - number) % 2**64 == 0


def test_the_representation_shows_the_text() -> None:
    assert repr(Quantity(10**9)) == "Quantity('1')"
