"""Random expressions over random devices: a value or an error of CEL, never one of Python."""

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.cel import CelError, CompileError, Environment, Value
from kubestow.cel.functions import Overload
from kubestow.cel.library import LIBRARY
from kubestow.cel.library.semvers import parse_semver
from kubestow.cel.static_types import DYN, Type
from kubestow.cel.values import DefaultMap, type_name

ENVIRONMENT = Environment({"a": DYN, "b": DYN, "c": DYN})
WORDS = (
    "0 1 -1 2 9223372036854775807 -9223372036854775808 1u 18446744073709551615u 1.5 -0.0 1e308 "
    "1e-320 1e4000 true false null '' 'a' 'é😀' '1' '-5' '1.2.3' '10.0.0.1' '::1' '10.0.0.0/8' "
    "'https://a.b/c?d=e' '1h' '5Gi' '1e30' '9e999999' '+99:99' '-1:-1' 'Europe/Berlin' '../..' "
    "'0001-01-01T00:00:00Z' '9999-12-31T23:59:59Z' '2024-02-30T00:00:00+99:00' '[a-' '(a|b)*c' "
    "'\\\\pL+' '%s' '%.3f' '%.99999999999f' '%x%b%o%e' [] {} [1,2] ['b','a'] [1.5,dyn('x')] "
    "{'a':1} {1:[2],true:{}} b'\\xff' b'abc' lists.range(5) quantity('1Gi') semver('1.2.3-9') "
    "ip('::1') cidr('10.0.0.0/8') url('/x') timestamp(253402300799) duration('2562047h') "
    "duration('-2562047h') timestamp('0001-01-01T00:00:00Z') double('inf') double('nan') "
    "optional.of(1) optional.none() type(1) format.uuid() a b c a.x b[0] c.?x [?c[?0]]"
)
OPERATOR_WORDS = "+ - * / % == != < <= > >= in && ||"
MACRO_WORDS = (
    "all(v, {})|exists(v, {})|exists_one(v, {})|map(v, {})|filter(v, {})|map(v, true, {})|"
    "sortBy(v, {})|all(i, v, {})|transformMap(i, v, {})|transformMapEntry(i, v, {{v: {}}})|"
    "transformList(i, v, {})|optMap(v, {})|optFlatMap(v, optional.of({}))"
)
LITERALS = st.sampled_from(WORDS.split())
LONG_LITERALS = st.sampled_from(["'" + "9" * 5_000 + "'", "9" * 5_000, "'1." + "1" * 5_000 + ".2'"])
OPERATORS = st.sampled_from(OPERATOR_WORDS.split())
MACROS = st.sampled_from(MACRO_WORDS.split("|"))


def _words_by_type() -> dict[str, list[str]]:
    """The words that have a value, by the name of its type."""
    words: dict[str, list[str]] = {}
    for word in WORDS.split():
        with contextlib.suppress(CelError, CompileError):
            value = ENVIRONMENT.compile(word).evaluate({})
            words.setdefault(type_name(value), []).append(word)
    return words


WORDS_BY_TYPE = _words_by_type()


def _larger(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    # As `dyn`, because the checker would refuse most expressions otherwise.
    operand = parts.map(lambda part: f"dyn({part})")

    def argument(param: Type) -> st.SearchStrategy[str]:
        # Mostly of the right type, because most calls would end in "no such overload" otherwise.
        words = WORDS_BY_TYPE.get(param.name)
        return operand if words is None else st.one_of(st.sampled_from(words), operand)

    def call(overload: Overload) -> st.SearchStrategy[str]:
        def written(args: tuple[str, ...]) -> str:
            target, rest = (f"({args[0]}).", args[1:]) if overload.is_method else ("", args)
            return f"{target}{overload.name}({', '.join(rest)})"

        return st.tuples(*map(argument, overload.params)).map(written)

    return st.one_of(
        st.sampled_from(LIBRARY).flatmap(call),
        st.tuples(operand, OPERATORS, operand).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        st.tuples(operand, MACROS, st.one_of(st.just("v"), operand)).map(
            lambda t: f"({t[0]}).{t[1].format(t[2])}"
        ),
        st.tuples(operand, operand).map(lambda t: f"({t[0]})[{t[1]}]"),
        st.tuples(operand, operand, operand).map(lambda t: f"({t[0]}) ? ({t[1]}) : ({t[2]})"),
        st.tuples(operand, operand).map(lambda t: f"{{{t[0]}: {t[1]}}}"),
        st.lists(operand, max_size=3).map(lambda t: f"[{', '.join(t)}]"),
        st.tuples(operand, operand).map(lambda t: f"cel.bind(v, {t[0]}, [v, {t[1]}, v])"),
        operand.map(lambda t: f"-({t})"),
        operand.map(lambda t: f"!({t})"),
    )


SMALL = _larger(st.one_of(LITERALS, LONG_LITERALS))
EXPRESSIONS = st.one_of(SMALL, _larger(SMALL))
VERSION = parse_semver("1.2.3-rc.1")
ATTRIBUTES = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.text(max_size=64),
    st.just(VERSION),
    st.lists(st.text(max_size=8), max_size=3).map(tuple),
    st.dictionaries(st.text(max_size=3), st.integers(-9, 9), max_size=3),
    st.just(DefaultMap({"x": {"y": 1}}, {})),
)


@settings(max_examples=300)
@given(expression=EXPRESSIONS, values=st.tuples(ATTRIBUTES, ATTRIBUTES, ATTRIBUTES))
def test_no_expression_ends_in_an_error_of_python(expression: str, values: tuple[Value, ...]):
    try:
        program = ENVIRONMENT.compile(expression)
        program.evaluate(dict(zip("abc", values, strict=True)))
    except (CelError, CompileError):
        pass
