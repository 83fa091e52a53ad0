"""What evaluations cost, and that the limits end expensive ones early."""

import tracemalloc

import pytest

from kubestow.cel import CelError, Environment, Value
from kubestow.cel.frame import Frame
from kubestow.cel.meter import COST_ERROR, COST_MAX, WORK_MAX
from kubestow.cel.static_types import DYN

VARIABLES: dict[str, Value] = {"x": 1, "s": "0123456789", "m": {"a": {"b": True}}, "l": (1, 2, 3)}
ENVIRONMENT = Environment(dict.fromkeys(VARIABLES, DYN))


def cost_of(expression: str) -> int:
    frame = Frame(VARIABLES)
    ENVIRONMENT.compile(expression)._run(frame)
    return COST_MAX - frame.cost_left


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        pytest.param("1", 0, id="literal"),
        pytest.param("[1, 2]", 0, id="constant-list"),
        pytest.param("{'a': 1}", 0, id="constant-map"),
        pytest.param("x", 1, id="variable"),
        pytest.param("m.a.b", 3, id="fields"),
        pytest.param("m['a'].b", 3, id="element-and-field"),
        pytest.param("m[s == '' ? 'b' : 'a'].b", 1 + 1 + 1 + 1 + 0, id="computed-element"),
        pytest.param("has(m.a.b)", 2, id="presence"),
        pytest.param("[x]", 11, id="list"),
        pytest.param("{'a': x}", 31, id="map"),
        pytest.param("x == 1", 2, id="equality"),
        pytest.param("!(x == 1)", 3, id="negation"),
        pytest.param("x == 1 && x == 2", 4, id="and"),
        pytest.param("x == 2 && x == 2", 2, id="and-decided"),
        pytest.param("s == 'abc'", 2, id="text-equality-by-the-shorter"),
        pytest.param("s + s", 4, id="concatenation"),
        pytest.param("l + l", 3, id="lists-joined-at-no-cost"),
        pytest.param("x in [1, 2]", 1, id="in-constant-list"),
        pytest.param("x in l", 5, id="in-list"),
        pytest.param("s.startsWith('0')", 2, id="prefix"),
        pytest.param("s.contains('0')", 2, id="contains"),
        pytest.param("s.matches('[0-9]+$')", 1 + 2 * 2, id="matches"),
        pytest.param("s.split('')", 3, id="split"),
        pytest.param("int('5')", 0, id="constant-conversion"),
        pytest.param("string(x)", 2, id="conversion"),
        pytest.param("x == 1 ? s : m", 2, id="conditional-of-variables"),
        pytest.param("l.all(v, v > 0)", 1 + 3 * (3 + 2) + 1, id="all"),
        pytest.param("l.exists(v, v > 0)", 1 + (4 + 2) + 3 + 1, id="exists-ends-early"),
        pytest.param("l.map(v, v)", 1 + 3 * 13 + 1, id="map-macro"),
        pytest.param("l.filter(v, v > 1)", 1 + 3 * 2 + 2 * 13 + 1, id="filter"),
        pytest.param("l.exists_one(v, v == 1)", 1 + 3 * 2 + 2 + 2, id="exists-one"),
        pytest.param("lists.range(5)", 5 + 11, id="range"),
        pytest.param("l.distinct()", 1 + 2 * 9 + 11, id="distinct"),
        pytest.param("sets.contains(l, l)", 2 + 1 + 9, id="sets"),
        pytest.param("cel.bind(v, x, v == v)", 1 + 3, id="bind"),
        pytest.param("cidr('10.0.0.0/8').containsIP('10.0.0.1')", 1 + 1 + 1, id="address"),
        pytest.param("format.dns1123Label().validate('a').hasValue()", 1 + 8 + 1, id="format"),
        pytest.param("s < 'abc'", 1 + 1, id="text-order-by-the-shorter"),
        pytest.param("x < 1", 1 + 1, id="order"),
        pytest.param("s + 'a'", 1 + 2, id="concatenation-rounds-up"),
        pytest.param("l == l", 2 + 1, id="list-equality"),
        pytest.param("optional.of(s) == optional.of(s)", 2 + 2 + 1, id="optional-equality"),
        pytest.param("x == ''", 1 + 0, id="equality-with-nothing"),
        pytest.param("l.slice(0, 2)", 1 + 2 + 11, id="slice"),
        pytest.param("l.slice(2, 2)", 1 + 0 + 11, id="empty-slice"),
        pytest.param("l.reverse()", 1 + 3 + 11, id="reverse"),
        pytest.param("[l].flatten()", 11 + 1 + 11, id="flatten"),
        pytest.param("[l, l].flatten(2)", 12 + 4 + 11, id="flatten-by-depth"),
        pytest.param("[[1], [2]].flatten(0)", 10 + 0 + 11, id="flatten-nothing"),
        pytest.param("l.sort()", 1 + 2 * 9 + 11, id="sort"),
        pytest.param("[s, s].distinct()", 12 + 8 + 11, id="distinct-texts"),
        pytest.param("[s].distinct()", 11 + 2 + 11, id="distinct-of-one-text"),
        pytest.param("[s].isSorted()", 11 + 1, id="sorted-texts"),
        pytest.param("l.sum()", 1 + 3, id="sum"),
        pytest.param("[s, s].join()", 12 + 4, id="join"),
        pytest.param("[s, s].join('-')", 12 + 5, id="join-with-a-text"),
        pytest.param("[].join()", 0, id="join-nothing"),
        pytest.param("s.replace('0', '1')", 1 + 2, id="replace"),
        pytest.param("s.contains(s)", 2 + 1, id="contains-by-both"),
        pytest.param("s.find('[0-9]+')", 1 + 2 * 2, id="find"),
        pytest.param("bytes(s)", 1 + 1, id="bytes"),
        pytest.param("ip.isCanonical('10.0.0.1')", 2, id="canonical-address"),
        pytest.param("cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", 1 + 3 + 2, id="range-text"),
        pytest.param("cidr('10.0.0.0/9').containsIP(ip('10.0.0.1'))", 1 + 1 + 1, id="range"),
        pytest.param("cidr('::1/128').containsIP(ip('::1'))", 1 + 1 + 4, id="long-range"),
        pytest.param("sets.equivalent(l, l)", 2 + 1 + 18, id="equivalent-sets"),
        pytest.param("'a' in m", 1 + 1, id="in-map"),
        pytest.param("lists.range(0)", 0 + 11, id="empty-range"),
        pytest.param("format.uri().validate(s).hasValue()", 1 + 1 + 552 + 1, id="uri"),
    ],
)
def test_costs_are_those_of_upstreams_rules(expression: str, cost: int):
    assert cost_of(expression) == cost


@pytest.mark.parametrize(
    ("expression", "work"),
    [
        pytest.param("x", 0, id="nothing"),
        pytest.param("l + l", (3 + 3) // 2, id="lists-joined"),
        pytest.param("l == l", 2 * 3, id="elements-compared"),
        pytest.param("m == m", 2 + 2, id="entries-compared"),
        pytest.param("[x] == l", 0, id="other-length"),
        pytest.param("optional.of(x) == optional.of(1)", 2, id="optional-compared"),
        pytest.param("dyn(l).indexOf(9)", 3, id="traversal"),
        pytest.param("[[x]].flatten()", 2 + 2, id="flatten"),
        pytest.param("'%s'.format([l])", 3 * 3, id="list-written"),
        pytest.param("'%s'.format([m])", 3 + 3, id="map-written"),
        pytest.param("'%.3f'.format([dyn(1.0)])", 3, id="digits"),
        pytest.param("string(s)", 2 * 10, id="text-converted"),
    ],
)
def test_what_costs_little_and_takes_long_is_counted_as_work(expression: str, work: int):
    frame = Frame(VARIABLES)
    ENVIRONMENT.compile(expression)._run(frame)
    assert WORK_MAX - frame.work_left == work


def nested(first: str, step: str, count: int, last: str) -> str:
    """`cel.bind` in `cel.bind`: each value is made from the one before, `@`."""
    text = last.replace("@", f"v{count}")
    for number in reversed(range(count)):
        text = f"cel.bind(v{number + 1}, {step.replace('@', f'v{number}')}, {text})"
    return f"cel.bind(v0, {first}, {text})"


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(nested("'xxxxxxxx'", "@ + @", 40, "@.size() > 0"), id="texts"),
        pytest.param(nested("dyn('xxxxxxxx')", "@ + @", 40, "@.size() > 0"), id="dyn-texts"),
        pytest.param(nested("[1, x]", "@ + @", 60, "size(@) > 0"), id="lists"),
        pytest.param(nested("'aaaaaaaaaa'", "@.replace('a', @)", 8, "size(@) > 0"), id="replace"),
        pytest.param(nested("['a']", "[@.join(), @.join()]", 60, "size(@) > 0"), id="join"),
        pytest.param("lists.range(20000).distinct().size() > 1", id="distinct"),
        pytest.param("sets.contains(lists.range(2000), lists.range(2000))", id="sets"),
        pytest.param("'%.9999999f'.format([1.5]) == ''", id="precision"),
        pytest.param(nested("'1h'", "@ + @", 22, "duration(@) > duration('1s')"), id="duration"),
        pytest.param("l.all(v, lists.range(1000000).size() > 0) || true", id="not-ignored-by-or"),
        pytest.param("[1].exists(v, lists.range(2000000).size() > 0) || true", id="nor-by-exists"),
    ],
)
def test_the_limit_ends_an_expression_before_it_takes_memory(expression: str):
    program = ENVIRONMENT.compile(expression)
    tracemalloc.start()
    try:
        with pytest.raises(CelError, match=COST_ERROR):
            program.evaluate(VARIABLES)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "last",
    [
        pytest.param("@ == @", id="equality"),
        pytest.param("'%s'.format([@]) == ''", id="format"),
        pytest.param("@.flatten(100).size() == 1", id="flatten"),
        pytest.param("dyn(@).indexOf(1) == 1", id="traversal"),
        pytest.param("[@, @].distinct().size() == 1", id="distinct"),
    ],
)
def test_values_of_exponentially_many_parts_are_not_traversed(
    last: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("kubestow.cel.meter.WORK_MAX", WORK_MAX // 100)
    program = ENVIRONMENT.compile(nested("[x]", "[@, @]", 60, last))
    with pytest.raises(CelError, match=COST_ERROR):
        program.evaluate(VARIABLES)


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(9999).all(i, !'a'.matches('x{1000}' + string(i)))",
        nested("'ab'", "@ + @", 12, "@.findAll('a.*z|b').size() > 0"),
    ],
)
def test_many_patterns_and_long_texts_are_not_searched(
    expression: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("kubestow.cel.meter.WORK_MAX", WORK_MAX // 100)
    with pytest.raises(CelError, match=COST_ERROR):
        ENVIRONMENT.compile(expression).evaluate(VARIABLES)
