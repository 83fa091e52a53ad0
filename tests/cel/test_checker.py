"""The static type of an expression, and what does not compile because of types."""

import pytest

from kubestow.cel import CompileError, Environment
from kubestow.cel.static_types import DYN, INT, NULL, STRING, Type, accepts, joined, list_of, map_of

OBJECT = Type("example.Object")
VARIABLES = {
    "x": DYN,
    "o": OBJECT,
    "m": map_of(STRING, INT),
    "l": list_of(STRING),
    "d": map_of(STRING, DYN),
}
ENVIRONMENT = Environment(VARIABLES, objects={OBJECT: {"field": INT}})


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        # Literals and names
        ("null", "null_type"),
        ("1u", "uint"),
        ("1.0", "double"),
        ("b'a'", "bytes"),
        ("int", "type"),
        ("[]", "list(dyn)"),
        ("[1]", "list(int)"),
        ("[1, x]", "list(dyn)"),
        ("[[1], [x]]", "list(list(dyn))"),
        ("{}", "map(dyn, dyn)"),
        ("{'a': 1}", "map(string, int)"),
        ("{'a': 1, 'b': x}", "map(string, dyn)"),
        ("[?optional.of(1)]", "list(int)"),
        ("[?x]", "list(dyn)"),
        ("{?'a': optional.of(1)}", "map(string, int)"),
        # Fields
        ("o.field", "int"),
        ("has(o.field)", "bool"),
        ("m.a", "int"),
        ("x.a", "dyn"),
        ("m.?a", "optional_type(int)"),
        ("d.?a.b", "optional_type(dyn)"),
        ("d.?a.?b", "optional_type(dyn)"),
        ("optional.of(m).a", "optional_type(int)"),
        ("optional.of(m).?a", "optional_type(int)"),
        # Logic
        ("true ? 1 : 2", "int"),
        ("x ? 1 : x", "dyn"),
        ("x && true", "bool"),
        ("!x", "bool"),
        # Loops: over lists, maps and values known only at evaluation
        ("l.filter(v, v != '')", "list(string)"),
        ("m.filter(k, k != '')", "list(string)"),
        ("x.filter(v, v == 1)", "list(dyn)"),
        ("l.map(v, 1)", "list(int)"),
        ("l.all(i, v, i == 1 && v == '')", "bool"),
        ("m.all(k, v, k == '' && v == 1)", "bool"),
        ("x.all(k, v, k == '' && v == 1)", "bool"),
        ("l.transformList(i, v, i)", "list(int)"),
        ("m.transformList(k, v, v)", "list(int)"),
        ("m.transformMap(k, v, k)", "map(string, string)"),
        ("l.transformMap(i, v, v)", "map(int, string)"),
        ("x.transformMap(k, v, 1)", "map(dyn, int)"),
        ("m.transformMapEntry(k, v, {v: k})", "map(int, string)"),
        ("m.transformMapEntry(k, v, x)", "map(dyn, dyn)"),
        ("l.sortBy(v, size(v))", "list(string)"),
        ("cel.bind(v, 1, [v])", "list(int)"),
        # Optional values
        ("optional.of(1).optMap(v, [v])", "optional_type(list(int))"),
        ("optional.of(1).optFlatMap(v, optional.of('a'))", "optional_type(string)"),
        ("x.optMap(v, v)", "optional_type(dyn)"),
        # Functions of any type
        ("l[0]", "string"),
        ("l + l", "list(string)"),
        ("l + [x]", "list(dyn)"),
        ("[1, 2].reverse()", "list(int)"),
        ("optional.of(1).orValue(2)", "int"),
        ("optional.none()", "optional_type(dyn)"),
        ("dyn(1)", "dyn"),
    ],
)
def test_the_type_of_an_expression(expression: str, shown: str) -> None:
    assert str(ENVIRONMENT.compile(expression).result_type) == shown


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("o.other", "undefined field 'other'"),
        ("[?1]", "expected type 'optional_type' but found 'int'"),
        ("{?'a': 1}", "expected type 'optional_type' but found 'int'"),
        ("[1].optMap(v, v)", "expected type 'optional_type' but found 'list(int)'"),
        ("[[1], ['a']]", "expected type 'list(int)' but found 'list(string)'"),
        ("l.filter(v, 1)", "expected type 'bool' but found 'int'"),
        ("l.map(v, 1, v)", "expected type 'bool' but found 'int'"),
        ("l.all(v, v == 1)", "found no matching overload for '_==_' applied to '(string, int)'"),
        (
            "l.all(i, v, i == '')",
            "found no matching overload for '_==_' applied to '(int, string)'",
        ),
        ("l.map(v, v)[0] == 1", "found no matching overload for '_==_' applied to '(string, int)'"),
        ("[1].map(v, v) == l.map(v, w)", "undeclared reference to 'w' (in container '')"),
        ("l.exists(v, true) && v == ''", "undeclared reference to 'v' (in container '')"),
        ("1 ? 1 : 2", "found no matching overload for '_?_:_' applied to '(int, int, int)'"),
        ("'%s'.format([w])", "undeclared reference to 'w' (in container '')"),
        ("'a'.other(1)", "undeclared reference to 'other' (in container '')"),
    ],
)
def test_types_that_do_not_fit(expression: str, text: str) -> None:
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.compile(expression)
    assert str(caught.value).split("\n")[0].endswith(f": {text}")


@pytest.mark.parametrize(
    ("expected", "actual", "is_accepted"),
    [
        (INT, INT, True),
        (INT, STRING, False),
        (INT, DYN, True),
        (DYN, INT, True),
        (list_of(INT), list_of(DYN), True),
        (list_of(INT), list_of(STRING), False),
        (list_of(INT), Type("list"), False),
        (INT, NULL, False),
        (Type("google.protobuf.Duration"), NULL, True),
        (Type("kubernetes.Quantity"), NULL, True),
    ],
)
def test_accepted_types(expected: Type, actual: Type, is_accepted: bool) -> None:
    assert accepts(expected, actual, {}) is is_accepted


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (INT, INT, INT),
        (INT, STRING, DYN),
        (list_of(INT), list_of(STRING), list_of(DYN)),
        (list_of(INT), Type("list"), DYN),
        (list_of(INT), map_of(INT, INT), DYN),
    ],
)
def test_a_type_that_accepts_both(first: Type, second: Type, both: Type) -> None:
    assert joined(first, second) == both
