"""Expressions from text to value: the language and its libraries (spec 08 B8)."""

import math

import pytest

from kubestow.cel import CelError, CompileError, Environment, Value
from kubestow.cel.meter import COST_ERROR
from kubestow.cel.static_types import DYN
from kubestow.cel.values import UInt

ENVIRONMENT = Environment({"x": DYN, "s": DYN})
QUANTITY_ERROR = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


def evaluate(expression: str, **variables: Value) -> Value:
    return ENVIRONMENT.compile(expression).evaluate({"x": 1, "s": "text", **variables})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        # Literals
        ("1", 1),
        ("0x1F", 31),
        ("-9223372036854775808", -(2**63)),
        ("1u", UInt(1)),
        ("1.5", 1.5),
        (".5e1", 5.0),
        ("1e2", 100.0),
        ('"a\\n\\u00e9\\x41\\101"', "a\né" + "AA"),
        ("'single'", "single"),
        ('r"a\\n"', "a\\n"),
        ('"""three " quotes"""', 'three " quotes'),
        (r'b"\xff\101é"', b"\xffA\xc3\xa9"),
        ("null", None),
        ("true // a comment", True),
        ("[1, 2]", (1, 2)),
        ("[1, 2,]", (1, 2)),
        ('{"a": 1}["a"]', 1),
        ("{true: 1, false: 2}[true]", 1),
        ("{1: 'a'}[1]", "a"),
        # Arithmetic
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7 % -2", 1),
        ("1.0 / 0.0 > 1.0e300", True),
        ("--1", 1),
        ("'a' + 'b'", "ab"),
        ("[1] + [2]", (1, 2)),
        ("2u - 1u", UInt(1)),
        # Comparison
        ("1 < 1.5", True),
        ("1u <= 1", True),
        ("x == 1.0", True),
        ("'a' < 'b'", True),
        ("false < true", True),
        ("x == 'a'", False),
        ("x != 'a'", True),
        ("[1, 2] == [1, 2]", True),
        ("[x] == [1.0]", True),
        ("{'a': [1]} == {'a': [1]}", True),
        ("1 in [1, 2]", True),
        ("'a' in {'a': 1}", True),
        ("x in [dyn(1.0)]", True),
        # Logic
        ("!true", False),
        ("true && false", False),
        ("false || true", True),
        ("true ? 1 : 2", 1),
        ("false ? 1 : true ? 2 : 3", 2),
        ("1 < 2 && 2 < 3 && 3 < 4", True),
        # Names
        ("x", 1),
        (".x", 1),
        ("type(x) == int", True),
        ("type(s) == string && type(x) != type(s)", True),
        # Macros
        ("[1, 2, 3].all(i, i > 0)", True),
        ("[1, 2, 3].exists(i, i > 2)", True),
        ("[1, 2, 2].exists_one(i, i == 2)", False),
        ("[1, 2].existsOne(i, i == 2)", True),
        ("[1, 2, 3].filter(i, i % 2 == 1)", (1, 3)),
        ("[1, 2].map(i, i * 2)", (2, 4)),
        ("[1, 2, 3].map(i, i > 1, i * 2)", (4, 6)),
        ("{'a': 1, 'b': 2}.all(k, k < 'c')", True),
        ("{'a': 1}.map(k, k)", ("a",)),
        ("[5, 6].all(i, v, v == i + 5)", True),
        ("{'a': 1}.exists(k, v, k == 'a' && v == 1)", True),
        ("[5, 6].transformList(i, v, i + v)", (5, 7)),
        ("[5, 6].transformList(i, v, i > 0, v)", (6,)),
        ("{'a': 1}.transformMap(k, v, v + 1)", {"a": 2}),
        ("{'a': 'b'}.transformMapEntry(k, v, {v: k})", {"b": "a"}),
        ("[[1, 2], [3]].map(l, l.map(i, i + 1))", ((2, 3), (4,))),
        ("[1].map(x, [2].map(x, x))", ((2,),)),
        ("cel.bind(y, x + 1, y * y)", 4),
        ("has({'a': 1}.a)", True),
        ("has({'a': 1}.b)", False),
        # Optional values
        ("optional.of(1).orValue(2)", 1),
        ("optional.none().orValue(2)", 2),
        ("{'a': 1}.?a.orValue(0)", 1),
        ("{'a': 1}.?b.orValue(0)", 0),
        ("{'a': {'b': 1}}.?a.b.orValue(0)", 1),
        ("{'a': {'b': 1}}.?x.b.orValue(0)", 0),
        ("{'a': 1}[?'a'].hasValue()", True),
        ("[1, 2][?5].hasValue()", False),
        ("optional.of(1).or(optional.of(2)).value()", 1),
        ("optional.ofNonZeroValue('').hasValue()", False),
        ("optional.of(2).optMap(v, v * 2).value()", 4),
        ("optional.none().optMap(v, v * 2).hasValue()", False),
        ("optional.of(2).optFlatMap(v, optional.none()).hasValue()", False),
        ("[?optional.of(1), ?optional.none(), 2]", (1, 2)),
        ("{?'a': optional.none(), 'b': 1}", {"b": 1}),
        ("[1, 2].first().value() + [1, 2].last().value()", 3),
        ("optional.unwrap([optional.of(1), optional.none()])", (1,)),
        ("optional.of(1) == optional.of(1)", True),
        # Conversions
        ("int('12') + int(3.9) + int(2u)", 17),
        ("uint('2')", UInt(2)),
        ("double('1.5')", 1.5),
        ("string(1.0)", "1"),
        ("string(1e21)", "1000000000000000000000"),
        ("string(1.5e-7)", "0.00000015"),
        ("string(true) + string(b'a') + string(5u)", "truea5"),
        ("bool('true')", True),
        ("bytes('é')", b"\xc3\xa9"),
        ("size('é') + size(b'ab') + [1].size() + {'a': 1}.size()", 5),
        # Times
        ("timestamp('2026-01-02T03:04:05.5Z').getMilliseconds()", 500),
        ("timestamp('2026-01-02T03:04:05Z').getDayOfWeek()", 5),
        ("timestamp('2026-01-02T03:04:05Z').getHours('+02:00')", 5),
        ("timestamp('2026-01-02T03:04:05Z').getMonth()", 0),
        ("string(timestamp('2026-01-02T03:04:05+01:00'))", "2026-01-02T02:04:05Z"),
        ("timestamp(0) + duration('1h') == timestamp(3600)", True),
        ("(timestamp(10) - timestamp(4)).getSeconds()", 6),
        ("string(duration('1m1.5s'))", "61.5s"),
        ("duration('90m').getHours()", 1),
        # Texts
        ("'hello'.contains('ell') && 'hello'.startsWith('he') && 'hello'.endsWith('lo')", True),
        ("'a1'.matches('^[a-z][0-9]$') && matches('b2', '[0-9]')", True),
        ("'a\\n'.matches('a$')", False),
        ("'abc'.charAt(1) + 'abc'.charAt(3)", "b"),
        ("'abcb'.indexOf('b') + 'abcb'.indexOf('b', 2) * 10", 31),
        ("'abcb'.lastIndexOf('b') + 'abcb'.lastIndexOf('b', 2) * 10", 13),
        ("['a', 'b'].join() + ['a', 'b'].join('-')", "aba-b"),
        ("'AbÉ'.lowerAscii() + 'abé'.upperAscii()", "abÉABé"),
        ("'aaa'.replace('a', 'b', 2)", "bba"),
        ("'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']", True),
        ("'ab'.split('') == ['a', 'b'] && 'abc'.split('', 2) == ['a', 'bc']", True),
        ("'abc'.substring(1) + 'abc'.substring(0, 1)", "bca"),
        ("' a '.trim()", "a"),
        ("strings.quote('a\"\\n')", '"a\\"\\n"'),
        ("'%s %d %.2f %x %%'.format(['a', 5, 1.5, 255])", "a 5 1.50 ff %"),
        ("'%s %s'.format([[1, 2], {'a': true}])", "[1, 2] {a: true}"),
        ("'%e %o %b %X'.format([1.0, 8, 5, 'hi'])", "1.000000e+00 10 101 6869"),
        ("'abc123'.find('[0-9]+')", "123"),
        ("timestamp(0).getHours('+99:99')", 4),
        ("timestamp(0).getHours('-01:30')", 22),
        ("int('" + "0" * 5_000 + "1')", 1),
        ("isSemver('1.2.3-" + "9" * 5_000 + "')", True),
        ("isCIDR('10.0.0.0/" + "9" * 5_000 + "')", False),
        ("timestamp('9999-12-31T23:59:59Z') - duration('1h') > timestamp(0)", True),
        ("'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'a1b2'.findAll('[0-9]', 1) == ['1']", True),
        # Lists and sets
        ("[1, 2, 2].isSorted() && !['b', 'a'].isSorted()", True),
        ("[1, 2].sum() + [3, 1].min() + [3, 1].max()", 7),
        ("[1, 2, 1].indexOf(1) + [1, 2, 1].lastIndexOf(1) * 10", 20),
        ("[1, 2, 1, 1.0 > 0.0 ? 1 : 0].distinct()", (1, 2)),
        ("[[1], [2, 3]].flatten()", (1, 2, 3)),
        ("lists.range(3)", (0, 1, 2)),
        ("[3, 1, 2].sort() == [1, 2, 3] && [1, 2].reverse() == [2, 1]", True),
        ("[1, 2, 3, 4].slice(1, 3)", (2, 3)),
        ("['ccc', 'a', 'bb'].sortBy(t, size(t))", ("a", "bb", "ccc")),
        ("sets.contains([1, 2], [2]) && !sets.contains([1], [2])", True),
        ("sets.equivalent([1, 2, 1], [2, 1])", True),
        ("sets.intersects([1], [2, 1])", True),
        # Quantities
        ("quantity('1Gi').compareTo(quantity('1024Mi'))", 0),
        ("quantity('1k') == quantity('1000')", True),
        ("isQuantity('1x') || !isQuantity('1Ki')", False),
        ("quantity('100m').isInteger()", False),
        ("quantity('5').asInteger() + 1", 6),
        ("quantity('1500m').asApproximateFloat()", 1.5),
        ("quantity('0.3').asApproximateFloat() == 3.0 * 0.1", True),
        ("quantity('2e3').asApproximateFloat()", 2000.0),
        ("quantity('1e4000').asApproximateFloat()", math.inf),
        ("quantity('-1e4000').asApproximateFloat()", -math.inf),
        ("quantity('1e4000').add(quantity('1n')).asApproximateFloat()", math.inf),
        (f"quantity('{'9' * 400}').asApproximateFloat()", math.inf),
        ("quantity('1e-9').asApproximateFloat()", 1e-9),
        ("quantity('1').add(quantity('2')).sub(1).add(3) == quantity('5')", True),
        (
            "quantity('2').isGreaterThan(quantity('1')) && quantity('1').isLessThan(quantity('2'))",
            True,
        ),
        ("sign(quantity('-1')) + sign(quantity('0'))", -1),
        # Versions
        ("semver('1.2.3').major() + semver('1.2.3').minor() + semver('1.2.3').patch()", 6),
        ("semver('1.2.3').isGreaterThan(semver('1.2.3-rc.1'))", True),
        ("semver('1.0.0-alpha.2').isLessThan(semver('1.0.0-alpha.10'))", True),
        ("semver('1.0.0-1').isLessThan(semver('1.0.0-a'))", True),
        ("semver('1.0.0+a') == semver('1.0.0+b')", True),
        ("semver('v01.2', true) == semver('1.2.0')", True),
        (
            "isSemver('1.2') || isSemver('1.2.3.4') || isSemver('01.2.3') || isSemver('1.2.x')",
            False,
        ),
        ("isSemver('v1', true) && isSemver('1.2.3-rc.1+b.5')", True),
        # Addresses
        ("ip('10.0.0.1').family() + ip('::1').family()", 10),
        ("isIP('10.0.0.1') && !isIP('10.0.0.256') && !isIP('::ffff:1.2.3.4')", True),
        ("ip.isCanonical('::1') && !ip.isCanonical('0:0::1')", True),
        ("ip('127.0.0.1').isLoopback() && ip('8.8.8.8').isGlobalUnicast()", True),
        ("ip('224.0.0.1').isLinkLocalMulticast() && ip('fe80::1').isLinkLocalUnicast()", True),
        ("string(ip('::1')) + string(cidr('10.0.0.5/8').masked())", "::110.0.0.0/8"),
        (
            "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('::/0').containsIP(ip('1.2.3.4'))",
            True,
        ),
        (
            "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && isCIDR('::/0') && !isCIDR('1.2.3')",
            True,
        ),
        ("cidr('10.1.2.3/8').prefixLength() + size(string(cidr('10.1.2.3/8').ip()))", 16),
        ("url('https://u@example.com:80/a?b=1').getHost()", "example.com:80"),
        ("url('https://[::1]:80/').getHostname() + url('https://[::1]:80/').getPort()", "::180"),
        ("url('https://e.com/a b'.replace(' ', '')).getEscapedPath()", "/ab"),
        ("url('https://e.com/?a=1&a=2').getQuery()['a'] == ['1', '2']", True),
        ("isURL('/path') && isURL('http://a') && !isURL('a/b') && !isURL('http:// a')", True),
        # Formats
        ("format.dns1123Label().validate('a-b').hasValue()", False),
        ("format.named('dns1123Label').value().validate('A').hasValue()", True),
        ("format.named('nothing').hasValue()", False),
        ("format.dns1123LabelPrefix().validate('a-').hasValue()", False),
        (
            "[format.uuid().validate('x'), format.date().validate('1-2')].map(v, v.hasValue())",
            (True, True),
        ),
    ],
)
def test_expression_has_the_value(expression: str, value: Value) -> None:
    result = evaluate(expression)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        pytest.param("{'a': 1}[s]", "no such key: text", id="B8-missing-key"),
        pytest.param("{'a': 1}.b", "no such key: b", id="B8-missing-field"),
        pytest.param("s.field", "no such key: field", id="field-of-a-text"),
        pytest.param("[1][x]", "index out of bounds: 1", id="B8-list-index"),
        pytest.param("s.charAt(9)", "index out of range: 9", id="B8-text-index"),
        pytest.param("s > 1", "no such overload", id="B8-operator"),
        pytest.param("!x", "no such overload", id="B8-not"),
        pytest.param("x && true", "no such overload", id="B8-and"),
        pytest.param("x ? 1 : 2", "no such overload", id="condition"),
        pytest.param("x + s", "no such overload", id="sum"),
        pytest.param("-s", "no such overload", id="negation"),
        pytest.param("1 in s", "no such overload", id="in"),
        pytest.param("[1, 2].all(i, s)", "no such overload", id="quantifier"),
        pytest.param(
            "s.isGreaterThan(semver('1.0.0'))",
            "no such overload: isGreaterThan(string, kubernetes.Semver)",
            id="B8-method",
        ),
        pytest.param(
            "quantity('1').compareTo(s)",
            "no such overload: compareTo(kubernetes.Quantity, string)",
            id="B8-method-argument",
        ),
        pytest.param("size(x)", "no such overload: size(int)", id="function"),
        pytest.param("x / 0", "division by zero", id="B8-division"),
        pytest.param("x % 0", "modulus by zero", id="modulus"),
        pytest.param("int(s)", "type conversion error from 'string' to 'int'", id="B8-int"),
        pytest.param(
            "int('9223372036854775808')",
            "type conversion error from 'string' to 'int'",
            id="int-range",
        ),
        pytest.param("9223372036854775807 + x", "integer overflow", id="overflow"),
        pytest.param("uint(-x)", "unsigned integer overflow", id="unsigned"),
        pytest.param("int(1e30)", "integer overflow", id="double-to-int"),
        pytest.param("semver(s)", "No Major.Minor.Patch elements found", id="B8-semver"),
        pytest.param(
            "semver('1.2.x')", 'Invalid character(s) found in patch number "x"', id="semver-part"
        ),
        pytest.param(
            "semver('01.2.3')",
            'Major number must not contain leading zeroes "01"',
            id="semver-zero",
        ),
        pytest.param("quantity(s)", QUANTITY_ERROR, id="B8-quantity"),
        pytest.param(
            "quantity('0.5').asInteger()", "cannot convert value to integer", id="as-integer"
        ),
        pytest.param("optional.none().value()", "optional.none() dereference", id="no-value"),
        pytest.param("dyn([]).min()", "min called on empty list", id="min-of-nothing"),
        pytest.param(
            "s.matches('(?=a)')",
            "error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
            id="re2",
        ),
        pytest.param(
            "{'a': 1, s: 2, 'text': 3}", "insert failed: key already exists", id="key-twice"
        ),
        pytest.param("double('NaN') < 1.0", "NaN values cannot be ordered", id="nan"),
        pytest.param(
            "int('" + "9" * 5_000 + "')",
            "type conversion error from 'string' to 'int'",
            id="digits",
        ),
        pytest.param(
            "uint('" + "9" * 5_000 + "')",
            "type conversion error from 'string' to 'uint'",
            id="udigits",
        ),
        pytest.param("timestamp(9223372036854775807)", "timestamp overflow", id="late"),
        pytest.param("timestamp(-62135596801)", "timestamp overflow", id="early"),
        pytest.param(
            "timestamp(253402300799) + duration('1s')", "timestamp overflow", id="late-sum"
        ),
        pytest.param("duration('2562047h') + duration('1h')", "duration overflow", id="long"),
        pytest.param(
            "[1][dyn(double('inf'))]", "unsupported index value inf in list", id="infinite-index"
        ),
        pytest.param("[1][dyn(0.5)]", "unsupported index value 0.5 in list", id="broken-index"),
        pytest.param("{[1]: 2}", "unsupported key type: list", id="list-as-key"),
        pytest.param(
            "timestamp(0).getHours('a:00')",
            'strconv.Atoi: parsing "a": invalid syntax',
            id="zone-syntax",
        ),
        pytest.param("timestamp(0).getHours('America')", "unknown time zone America", id="folder"),
        pytest.param(
            "semver('1.2." + "9" * 30 + "')",
            'strconv.ParseUint: parsing "' + "9" * 30 + '": value out of range',
            id="semver-digits",
        ),
    ],
)
def test_evaluation_ends_with_the_error(expression: str, text: str) -> None:
    with pytest.raises(CelError) as caught:
        evaluate(expression)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 / 0 > 0 || true", True),
        ("true || 1 / 0 > 0", True),
        ("1 / 0 > 0 && false", False),
        ("x && false", False),
        ("[1, 0].exists(i, 1 / i == 1)", True),
        ("[0, 1].exists(i, 1 / i == 1)", True),
        ("[0, 2].all(i, 1 / i == 1)", False),
    ],
)
def test_an_error_is_dropped_where_something_else_decides(expression: str, value: bool) -> None:
    assert evaluate(expression) is value


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("1 / 0 > 0 || {}.a", "division by zero"),
        ("{}.a || 1 / 0 > 0", "no such key: a"),
        ("1 / 0 > 0 && {}.a", "division by zero"),
        ("[0, 1].all(i, 1 / i > 0 || s.x)", "division by zero"),
    ],
)
def test_of_two_errors_the_left_one_counts(expression: str, text: str) -> None:
    with pytest.raises(CelError, match=f"^{text}$"):
        evaluate(expression)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("nothing", "undeclared reference to 'nothing' (in container '')"),
        ("nothing(1)", "undeclared reference to 'nothing' (in container '')"),
        ("'a'.nothing()", "undeclared reference to 'nothing' (in container '')"),
        ("'a' > 1", "found no matching overload for '_>_' applied to '(string, int)'"),
        ("1 == 1.0", "found no matching overload for '_==_' applied to '(int, double)'"),
        (
            "'a'.startsWith(1)",
            "found no matching overload for 'startsWith' applied to 'string.(int)'",
        ),
        ("quantity('1').sign()", "undeclared reference to 'sign' (in container '')"),
        ("1 && true", "found no matching overload for '_&&_' applied to '(int, bool)'"),
        (
            "true ? 1 : 'a'",
            "found no matching overload for '_?_:_' applied to '(bool, int, string)'",
        ),
        ("[1, 'a']", "expected type 'int' but found 'string'"),
        ("{'a': 1, 2: 3}", "expected type 'string' but found 'int'"),
        ("[1].all(i, i)", "expected type 'bool' but found 'int'"),
        (
            "1.all(i, true)",
            "expression of type 'int' cannot be range of a comprehension",
        ),
        ("'a'.b", "type 'string' does not support field selection"),
        ("has(x)", "invalid argument to has() macro"),
        ("[1].all(1, true)", "argument must be a simple name"),
        ("for", "reserved identifier: for"),
        ("1 +", "Syntax error: mismatched input '<EOF>' expecting IDENTIFIER"),
        ("(1", "Syntax error: mismatched input '<EOF>' expecting ')'"),
        ("1 2", "Syntax error: mismatched input '2' expecting <EOF>"),
        ("#", "Syntax error: token recognition error at: '#'"),
        ("'abc", "Syntax error: token recognition error: string"),
        ("9223372036854775808", "invalid int literal"),
    ],
)
def test_expression_does_not_compile(expression: str, text: str) -> None:
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.compile(expression)
    assert text in str(caught.value).split("\n")[0]


def test_compile_errors_show_the_position() -> None:
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.compile("true &&\n  nothing")
    assert str(caught.value) == (
        "compilation failed: ERROR: <input>:2:3: "
        "undeclared reference to 'nothing' (in container '')\n"
        " |   nothing\n"
        " | ..^"
    )


def test_costs_are_limited() -> None:
    with pytest.raises(CelError, match=COST_ERROR):
        evaluate("lists.range(1000).all(i, lists.range(1000).all(j, i + j >= 0))")


@pytest.mark.parametrize(
    ("literal", "error"),
    [
        pytest.param("9" * 5_000, "invalid int literal", id="int"),
        pytest.param("9" * 5_000 + "u", "invalid uint literal", id="uint"),
        pytest.param("1e4000", "invalid double literal", id="double"),
    ],
)
def test_numbers_that_are_too_large_do_not_compile(literal: str, error: str) -> None:
    with pytest.raises(CompileError, match=error):
        ENVIRONMENT.compile(literal)


@pytest.mark.parametrize("expression", ["(" * 2000 + "1" + ")" * 2000, "!" * 3000 + "true"])
def test_deep_nesting_is_a_compile_error(expression: str) -> None:
    with pytest.raises(CompileError):
        ENVIRONMENT.compile(expression)


def test_long_chains_are_not_deep() -> None:
    assert evaluate(" || ".join(["x == 2"] * 3000)) is False
