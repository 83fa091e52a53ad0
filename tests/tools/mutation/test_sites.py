"""Which changes of a source there are: one operator each, and none that tests need not notice."""

import textwrap

import pytest

from tools.mutation.sites import compiles, sites_in


def changed_lines(source: str) -> list[str]:
    """The line that each change gives, in the order of the sites."""
    text = textwrap.dedent(source).lstrip().encode()
    changed: list[str] = []
    for site in sites_in("module.py", text):
        after = site.applied(text)
        assert compiles(after)
        (line,) = set(after.splitlines()) - set(text.splitlines())
        changed.append(line.decode().strip())
    return changed


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        pytest.param("a = b < c", ["a = b <= c"], id="boundary"),
        pytest.param("a = b >= c", ["a = b > c"], id="boundary-from-above"),
        pytest.param("a = b == c != d", ["a = b != c != d", "a = b == c == d"], id="chain"),
        pytest.param("a = b not in c", ["a = b in c"], id="membership"),
        pytest.param("a = b is not c", ["a = b is c"], id="identity"),
        pytest.param("a = (b) + (c - d)", ["a = (b) - (c - d)", "a = (b) + (c + d)"], id="signs"),
        pytest.param("a = b // c", ["a = b * c"], id="division"),
        pytest.param(
            "a = b and c and d", ["a = b or c and d", "a = b and c or d"], id="each-conjunction"
        ),
        pytest.param("a = not (b)", ["a = (b)"], id="not"),
        pytest.param("a = 7", ["a = (8)", "a = (6)"], id="neighbours"),
        pytest.param("a = True", ["a = False"], id="truth"),
        pytest.param("a = 'text'", [], id="text"),
        pytest.param("a: Literal[1] = b", [], id="annotation"),
        pytest.param("Expr = Literal | Ident", [], id="name-of-a-type"),
        pytest.param("assert a < b", [], id="assertion"),
        pytest.param("a = zip(b, c, strict=True)", [], id="strict"),
        pytest.param("_LOG.info(1)", [], id="log-entry"),
        pytest.param("if TYPE_CHECKING:\n    import a", [], id="import-for-types"),
        pytest.param("@cache(size=1)\ndef f(): ...", [], id="decorator"),
        pytest.param("class A(B, frozen=True): ...", [], id="class-statement"),
        pytest.param("f(a)", ["pass"], id="call"),
        pytest.param("a.b = c", ["pass"], id="store"),
        pytest.param("a += b", ["pass"], id="sum"),
        pytest.param("a = b", [], id="plain-name"),
        pytest.param("def f(a=b < c): ...", ["def f(a=b <= c): ..."], id="default"),
    ],
)
def test_one_operator_changes(line: str, changes: list[str]) -> None:
    assert changed_lines(line) == changes


def test_a_result_becomes_none_unless_it_is_a_constant() -> None:
    source = """
    def f(a):
        if a:
            return
        if b:
            return False
        return a
    """
    assert changed_lines(source) == ["return True", "return None"]


def test_attributes_are_not_removed_where_an_object_is_built() -> None:
    source = """
    class A:
        def __init__(self, a):
            self.a = a

        def grow(self, a):
            self.a = a + a
    """
    assert changed_lines(source) == ["pass", "self.a = a - a"]


def test_positions_count_bytes() -> None:
    assert changed_lines("a = ('äöü', b < c)") == ["a = ('äöü', b <= c)"]
