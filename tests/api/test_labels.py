"""Label selectors: conversion, validity and matching (spec 01 §7)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api import labels as label_rules
from kubestow.api.labels import (
    EVERYTHING,
    NOTHING,
    Operator,
    Requirement,
    Selector,
    SelectorError,
    equality,
    join_errors,
    label_value_errors,
    parse_int64,
    parse_label_selector,
    parse_requirement,
    qualified_name_errors,
    selector_from_map,
)
from kubestow.api.meta import LabelSelector, LabelSelectorRequirement

EMPTY_VALUES = "for 'in', 'notin' operators, values set can't be empty"
NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
    " alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for"
    " validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or"
    " '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def expression(
    key: str, operator: str, values: tuple[str, ...] | None = None
) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


def selecting(
    *expressions: LabelSelectorRequirement, match_labels: dict[str, str] | None = None
) -> LabelSelector:
    return LabelSelector(match_labels=match_labels or {}, match_expressions=expressions)


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        pytest.param(None, {"a": "b"}, False, id="L1-absent-matches-nothing"),
        pytest.param(selecting(), {}, True, id="L2-empty-matches-everything"),
        pytest.param(selecting(expression("a", "NotIn", ("b",))), {}, True, id="L3-missing"),
        pytest.param(selecting(expression("a", "NotIn", ("b",))), {"a": "b"}, False, id="L3-same"),
        pytest.param(
            selecting(expression("a", "In", ("", "x"))), {"a": ""}, True, id="L4-empty-value"
        ),
        pytest.param(selecting(expression("a", "In", ("", "x"))), {}, False, id="L4-missing"),
        pytest.param(
            selecting(expression("a", "NotIn", ("b",)), match_labels={"a": "b"}),
            {"a": "b"},
            False,
            id="L5-both-must-hold",
        ),
        pytest.param(selecting(match_labels={"a": "b"}), {"a": "b", "c": "d"}, True, id="more"),
        pytest.param(selecting(match_labels={"a": "b"}), {"a": "c"}, False, id="other-value"),
        pytest.param(selecting(match_labels={"a": ""}), {}, False, id="empty-value-is-not-missing"),
        pytest.param(selecting(expression("a", "Exists")), {"a": ""}, True, id="exists-empty"),
        pytest.param(selecting(expression("a", "Exists", ())), {}, False, id="exists-missing"),
        pytest.param(selecting(expression("a", "DoesNotExist")), {"a": ""}, False, id="not-exists"),
        pytest.param(selecting(expression("a", "DoesNotExist")), {"b": ""}, True, id="absent"),
    ],
)
def test_selector_matches(
    selector: LabelSelector | None, labels: dict[str, str], expected: bool
) -> None:
    assert parse_label_selector(selector).matches(labels) is expected


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        pytest.param(
            selecting(expression("a", "In")),
            f"values: Invalid value: null: {EMPTY_VALUES}",
            id="L6-absent-values",
        ),
        pytest.param(
            selecting(expression("a", "NotIn", ())),
            f"values: Invalid value: null: {EMPTY_VALUES}",
            id="L6-empty-values-print-as-null",
        ),
        pytest.param(
            selecting(expression("a", "Gt", ("1",))),
            '"Gt" is not a valid label selector operator',
            id="L7-operator",
        ),
        pytest.param(
            selecting(expression("a", "Exists", ("x", "y"))),
            'values: Invalid value: ["x","y"]:'
            " values set must be empty for exists and does not exist",
            id="L8-values-with-exists",
        ),
        pytest.param(
            selecting(match_labels={"a": "-b"}),
            f'values[0][a]: Invalid value: "-b": {VALUE_RULE}',
            id="illegal-value",
        ),
        pytest.param(
            selecting(match_labels={"": "b"}),
            f'key: Invalid value: "": name part must be non-empty; name part {NAME_RULE}',
            id="empty-key",
        ),
        pytest.param(
            selecting(expression("a b", "In")),
            f'[key: Invalid value: "a b": name part {NAME_RULE},'
            f" values: Invalid value: null: {EMPTY_VALUES}]",
            id="all-mistakes-of-one-requirement",
        ),
        pytest.param(
            selecting(expression("b", "Bogus"), expression("a", "In")),
            '"Bogus" is not a valid label selector operator',
            id="only-the-first-requirement",
        ),
    ],
)
def test_an_invalid_selector_is_explained(selector: LabelSelector, message: str) -> None:
    with pytest.raises(SelectorError, match=f"^{re.escape(message)}$"):
        parse_label_selector(selector)


@pytest.mark.parametrize(
    ("operator", "values", "message"),
    [
        pytest.param(
            "Gt",
            None,
            "p.values: Invalid value: null:"
            " for 'Gt', 'Lt' operators, exactly one value is required",
            id="none",
        ),
        pytest.param(
            "Lt",
            (),
            "p.values: Invalid value: []: for 'Gt', 'Lt' operators, exactly one value is required",
            id="empty",
        ),
        pytest.param(
            "Gt",
            ("1", "x"),
            '[p.values: Invalid value: ["1","x"]:'
            " for 'Gt', 'Lt' operators, exactly one value is required,"
            " p.values[1]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an"
            " integer]",
            id="two",
        ),
        pytest.param(
            "Gt",
            ("-1",),
            f'p.values[0][a]: Invalid value: "-1": {VALUE_RULE}',
            id="number-that-is-no-label-value",
        ),
    ],
)
def test_comparison_needs_one_integer(
    operator: Operator, values: tuple[str, ...] | None, message: str
) -> None:
    with pytest.raises(SelectorError, match=f"^{re.escape(message)}$"):
        parse_requirement("a", operator, values, path="p")


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        pytest.param("Gt", "6", True, id="greater"),
        pytest.param("Gt", "5", False, id="equal-is-not-greater"),
        pytest.param("Lt", "5", False, id="equal-is-not-less"),
        pytest.param("Lt", "-3", True, id="negative-label"),
        pytest.param("Lt", "004", True, id="leading-zeros"),
        pytest.param("Lt", "abc", False, id="no-number"),
        pytest.param("Gt", "abc", False, id="no-number-either-way"),
        pytest.param("Gt", None, False, id="missing"),
        pytest.param("Lt", None, False, id="missing-either-way"),
    ],
)
def test_comparison_reads_label_as_integer(
    operator: Operator, value: str | None, expected: bool
) -> None:
    assert parse_requirement("a", operator, ("5",)).matches_value(value) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("007", 7),
        ("0" * 5000 + "1", 1),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
        ("-9223372036854775808", -(2**63)),
        ("-9223372036854775809", None),
        ("9" * 5000, None),
        ("", None),
        ("+", None),
        ("1_0", None),
        (" 1", None),
        ("1\n", None),
        ("1.0", None),
        ("0x1", None),
        ("\N{ARABIC-INDIC DIGIT ONE}", None),
    ],
)
def test_only_decimal_int64_is_a_number(text: str, expected: int | None) -> None:
    assert parse_int64(text) == expected


@pytest.mark.parametrize(
    "key",
    ["a", "A-b_c.9", "example.com/a", "a.b-c.d/E", "x" * 63, "p" * 253 + "/x"],
)
def test_a_valid_key_has_no_errors(key: str) -> None:
    assert qualified_name_errors(key) == []


@pytest.mark.parametrize(
    ("key", "errors"),
    [
        pytest.param("a\n", [f"name part {NAME_RULE}"], id="trailing-newline"),
        pytest.param("-a", [f"name part {NAME_RULE}"], id="dash-first"),
        pytest.param("x" * 64, ["name part must be no more than 63 bytes"], id="too-long"),
        pytest.param("/a", ["prefix part must be non-empty"], id="empty-prefix"),
        pytest.param(
            "p" * 254 + "/a", ["prefix part must be no more than 253 bytes"], id="long-prefix"
        ),
        pytest.param(
            "Example.com/a",
            [
                "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric"
                " characters, '-' or '.', and must start and end with an alphanumeric character"
                " (e.g. 'example.com', regex used for validation is"
                r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ],
            id="upper-case-prefix",
        ),
        pytest.param(
            "a/b/c",
            [
                f"a valid label key {NAME_RULE} with an optional DNS subdomain prefix and '/'"
                " (e.g. 'example.com/MyName')"
            ],
            id="two-slashes",
        ),
    ],
)
def test_an_invalid_key_is_explained(key: str, errors: list[str]) -> None:
    assert qualified_name_errors(key) == errors


@pytest.mark.parametrize(
    ("value", "errors"),
    [
        ("", []),
        ("x" * 63, []),
        ("a.b_c-D", []),
        ("x" * 64, ["must be no more than 63 bytes"]),
        ("a\n", [VALUE_RULE]),
        ("a b", [VALUE_RULE]),
        ("-" * 64, ["must be no more than 63 bytes", VALUE_RULE]),
    ],
)
def test_label_value_is_checked(value: str, errors: list[str]) -> None:
    assert label_value_errors(value) == errors


def test_everything_and_nothing_are_different() -> None:
    assert EVERYTHING != NOTHING
    assert EVERYTHING.is_empty
    assert not NOTHING.is_empty
    assert not NOTHING.matches({})
    assert parse_label_selector(None) is NOTHING
    assert parse_label_selector(LabelSelector()) is EVERYTHING


def test_equal_selectors_are_one_object() -> None:
    map_form = selector_from_map({"b": "2", "a": "1"})
    api_form = parse_label_selector(
        selecting(expression("b", "In", ("2",)), match_labels={"a": "1"})
    )
    assert map_form == api_form
    assert hash(map_form) == hash(api_form)
    assert map_form != selector_from_map({"a": "1"})


def test_selector_from_map_checks_no_syntax() -> None:
    assert selector_from_map({"-": "?"}).matches({"-": "?"})
    assert selector_from_map(None) is EVERYTHING
    assert selector_from_map({}) is EVERYTHING


def test_narrowing_adds_requirements_and_nothing_stays_nothing() -> None:
    narrowed = EVERYTHING.narrowed([equality("a", "1")])
    assert narrowed == selector_from_map({"a": "1"})
    assert NOTHING.narrowed([equality("a", "1")]) is NOTHING
    assert narrowed.narrowed([]) is narrowed


def test_equal_errors_are_listed_once() -> None:
    assert join_errors(["a", "b", "a"]) == "[a, b]"
    assert join_errors(["a", "a"]) == "a"
    assert join_errors([]) == ""


KEYS = st.sampled_from("abc")
VALUES = st.sampled_from(["", "1", "2", "x"])
LABELS = st.dictionaries(KEYS, VALUES)
REQUIREMENTS = st.one_of(
    st.builds(
        Requirement,
        KEYS,
        st.sampled_from(["In", "NotIn"]),
        st.frozensets(VALUES, min_size=1),
    ),
    st.builds(Requirement, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
)


def holds(requirement: Requirement, labels: dict[str, str]) -> bool:
    """The table of spec 01 §7.3, written out."""
    if requirement.key not in labels:
        return requirement.operator in ("NotIn", "DoesNotExist")
    if requirement.operator in ("Exists", "DoesNotExist"):
        return requirement.operator == "Exists"
    return (labels[requirement.key] in requirement.values) == (requirement.operator == "In")


@given(st.lists(REQUIREMENTS), LABELS)
def test_selector_is_the_and_of_its_requirements(
    requirements: list[Requirement], labels: dict[str, str]
) -> None:
    expected = all(holds(requirement, labels) for requirement in requirements)
    assert Selector(requirements).matches(labels) is expected


_PIECES = ("a", "Z9", "-", "_", ".", "/", "a" * 62, "a" * 63, "b." * 126, "\u00e9", "\n", " ")
label_texts = st.one_of(st.lists(st.sampled_from(_PIECES), max_size=4).map("".join), st.text())


@given(text=label_texts)
def test_the_short_form_of_the_rules_equals_the_long_one(text: str) -> None:
    assert bool(label_rules._VALID_KEY.fullmatch(text)) == (not qualified_name_errors(text))
    assert bool(label_rules._VALID_VALUE.fullmatch(text)) == (not label_value_errors(text))
