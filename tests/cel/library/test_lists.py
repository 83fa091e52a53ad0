"""Lists and sets at their ends: empty, one element, equal elements."""

import pytest

from kubestow.cel import CelError, Environment, Value

ENVIRONMENT = Environment({})


def evaluate(expression: str) -> Value:
    return ENVIRONMENT.compile(expression).evaluate({})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("[].isSorted()", True),
        ("[1, 1].isSorted()", True),
        ("[2, 1].isSorted()", False),
        ("[1, 3, 2].isSorted()", False),
        ("[1, 2, 3].sum()", 6),
        ("[2].sum()", 2),
        ("[1.5, 2.0].sum()", 3.5),
        ("[1u, 2u].sum() == 3u", True),
        ("[duration('1s'), duration('2s')].sum() == duration('3s')", True),
        ("[1].filter(v, false).sum()", 0),
        ("[2, 1, 3].min()", 1),
        ("[2, 3, 1].max()", 3),
        ("['b', 'a'].min()", "a"),
        ("[1, 2, 1].indexOf(2)", 1),
        ("[1, 2].indexOf(3)", -1),
        ("[1, 2].lastIndexOf(3)", -1),
        ("[1, 2, 1].lastIndexOf(1)", 2),
        ("[1, 2, 3].lastIndexOf(1)", 0),
        ("[].distinct()", ()),
        ("[2, 1, 2].distinct()", (2, 1)),
        ("[[[1]], [[2]]].flatten()", ((1,), (2,))),
        ("[[[1]], [[2]]].flatten(2)", (1, 2)),
        ("[[1]].flatten(0)", ((1,),)),
        ("lists.range(0)", ()),
        ("lists.range(1)", (0,)),
        ("[1, 2].reverse()", (2, 1)),
        ("[1, 2, 3].slice(0, 3)", (1, 2, 3)),
        ("[1, 2, 3].slice(3, 3)", ()),
        ("[1, 2, 3].slice(0, 0)", ()),
        ("[1, 2, 3].slice(1, 2)", (2,)),
        ("[2, 1, 2].sort()", (1, 2, 2)),
        ("[true, false].sort()", (False, True)),
        ("['b', 'a'].sort()", ("a", "b")),
        ("[3, 1, 2].sortBy(v, -v)", (3, 2, 1)),
        ("sets.contains([1], [])", True),
        ("sets.contains([1, 2], [1, 3])", False),
        ("sets.equivalent([1], [1, 1])", True),
        ("sets.equivalent([1], [1, 2])", False),
        ("sets.equivalent([1, 2], [1])", False),
        ("sets.intersects([1, 2], [3])", False),
        ("sets.intersects([], [1])", False),
        ("[].first().hasValue() || [].last().hasValue()", False),
        ("optional.ofNonZeroValue(0).hasValue()", False),
        ("optional.ofNonZeroValue(1).hasValue()", True),
        ("optional.ofNonZeroValue([]).hasValue()", False),
        ("optional.ofNonZeroValue({}).hasValue()", False),
        ("optional.ofNonZeroValue([0]).hasValue()", True),
        ("optional.ofNonZeroValue(null).hasValue()", False),
        ("optional.ofNonZeroValue(b'').hasValue()", False),
        ("optional.ofNonZeroValue(false).hasValue()", False),
        ("optional.none().or(optional.of(2)).value()", 2),
        ("[optional.none(), optional.of(2)].unwrapOpt()", (2,)),
        ("'abc'.findAll('')", ("", "", "", "")),
        ("'aab'.findAll('a*')", ("aa", "")),
        ("'abab'.findAll('b', 0)", ()),
        ("'abab'.findAll('b', -1)", ("b", "b")),
        ("'abab'.findAll('b', 2)", ("b", "b")),
        ("'abc'.find('x')", ""),
    ],
)
def test_lists_have_the_value(expression: str, value: Value) -> None:
    result = evaluate(expression)
    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("dyn([]).max()", "max called on empty list"),
        ("[[1]].flatten(-1)", "level must be non-negative"),
        ("[1].slice(-1, 0)", "cannot slice(-1, 0), negative indexes not supported"),
        ("[1].slice(0, -1)", "cannot slice(0, -1), negative indexes not supported"),
        ("[1, 2].slice(2, 1)", "cannot slice(2, 1), start index must be less than or equal"),
        ("[1].slice(0, 2)", "cannot slice(0, 2), list is length 1"),
    ],
)
def test_lists_end_with_the_error(expression: str, error: str) -> None:
    with pytest.raises(CelError) as caught:
        evaluate(expression)
    assert str(caught.value) == error
