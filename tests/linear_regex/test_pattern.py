"""Patterns: the same results as Python's engine, in linear time."""

import contextlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.linear_regex import Pattern, PatternError

SAME_IN_BOTH = [
    r"^a$", r"a*b", r"(a|b)*c$", r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", r"x{2,3}y", r"^x{0,2}$",
    r"^x{3}$", r"^(ab){2,}$", r"\bab\b", r"a\Bb", r"[^a-c]+$", r"^\d+(\.\d+)?$", r"(?i)^AbC$",
    r"a|b|", r"^.*z", r"^(a|ab)(c|bcd)(d*)$", r"^a{0}b$", r"[\d-]x", r"a??b", r"^(?:a|b){1,2}c{2}$",
    r"^$", r"(x{1,2}){2}$", r"^[]a]+$", r"^(a?){3}a{3}$", r"\x61+", r"^\S+ \S+$", r"[^\w]",
    r"(?s)a.b",
]  # fmt: skip


@pytest.mark.parametrize("pattern", SAME_IN_BOTH)
@given(text=st.text("abcdxyzABC01.- ]_\n", max_size=8))
def test_patterns_match_as_in_pythons_engine(pattern: str, text: str):
    # Python's `$` also matches before a line break at the end; that of RE2 does not.
    expected = re.compile(pattern.replace("$", r"\Z"), re.ASCII).search(text) is not None
    assert Pattern(pattern).is_in(text) is expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        pytest.param(r"^[[:alpha:]]+$", "abc", True, id="posix"),
        pytest.param(r"^[[:^digit:]]+$", "a1", False, id="negated-posix"),
        pytest.param(r"(?m)^b$", "a\nb\nc", True, id="lines"),
        pytest.param(r"^(?P<name>a)$", "a", True, id="named"),
        pytest.param(r"a{,2}", "a{,2}", True, id="braces-as-text"),
        pytest.param(r"^\x{1F600}$", "😀", True, id="code-point"),
    ],
)
def test_notations_of_re2(pattern: str, text: str, expected: bool):
    assert Pattern(pattern).is_in(text) is expected


def test_nested_repetitions_take_linear_time():
    # Python's engine would need more steps than there are atoms.
    assert not Pattern(r"^(a+)+$").is_in("a" * 20_000 + "b")
    assert not Pattern(r"^(a|a)*$").is_in("a" * 20_000 + "b")


@pytest.mark.parametrize(
    "pattern",
    [
        "a**",
        "(",
        "a)",
        "(?=a)",
        r"\1",
        "x{1001}",
        "[z-a]",
        "*",
        "[a",
        "\\",
        r"\p{Greek}",
        "(" * 5_000,
    ],
)
def test_what_cannot_be_compiled_is_refused(pattern: str):
    with pytest.raises(PatternError):
        Pattern(pattern)


def test_a_pattern_has_a_limit_of_size():
    with pytest.raises(PatternError, match="too large"):
        Pattern("(abcdefghijklmnopqrstuvwxyz){1000}")


def test_remembered_steps_are_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("kubestow.linear_regex.pattern.STEPS_MAX", 4)
    pattern = Pattern("^[a-z]+$")
    assert pattern.is_in("abcdefghijklmnopqrstuvwxyz")
    assert pattern._step_count <= 4


def test_remembered_states_are_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("kubestow.linear_regex.pattern.REMEMBERED_MAX", 50)
    pattern = Pattern("a.{20}b")
    assert not pattern.is_in("aaxa" * 50)
    assert pattern._remembered <= 50 + pattern.size
    assert pattern.is_in("xa" + "x" * 20 + "b")


# --- Against other engines --------------------------------------------------------------------

_ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", "x", r"\bx", "^a", "b|ax"])
_COUNTS = st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{0,2}", "{2}", "{1,}", "{1,3}?"])


def _with_operators(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    # Only single characters are repeated without limit: where a repeated piece can be empty,
    # engines that backtrack prefer other matches than RE2.
    return st.one_of(
        st.tuples(parts, parts).map("".join),
        st.tuples(parts, parts).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(st.sampled_from(["a", "[ab]", ".", "(?:ab)", "(?:a|bx)"]), _COUNTS).map("".join),
        parts.map(lambda part: f"(?i:{part})"),
        parts.map(lambda part: f"({part})"),
    )


@settings(max_examples=500)
@given(
    pattern=st.recursive(_ATOMS, _with_operators, max_leaves=6),
    text=st.text("abxAB1 \n", max_size=8),
)
def test_random_patterns_find_the_same_as_pythons_engine(pattern: str, text: str):
    expected = re.compile(pattern, re.ASCII).search(text)
    found = Pattern(pattern).find(text)
    assert found == (None if expected is None else expected.span())
    assert Pattern(pattern).is_in(text) is (expected is not None)


@pytest.mark.parametrize(
    ("pattern", "text", "span"),
    [
        pytest.param("a|ab", "xab", (1, 2), id="first-alternative"),
        pytest.param("(a|ab)(c|bcd)", "abcd", (0, 4), id="backs-out-of-it"),
        pytest.param("a+?", "aaa", (0, 1), id="lazy"),
        pytest.param("(?U)a+", "aaa", (0, 1), id="ungreedy-flag"),
        pytest.param("(?U)a+?", "aaa", (0, 3), id="ungreedy-flag-twice"),
        pytest.param("(|a)*", "aa", (0, 0), id="empty-first"),
        pytest.param("(|a)+", "aa", (0, 0), id="empty-first-many"),
        pytest.param(r"\Qa.b\E+", "a.bb", (0, 4), id="quoted"),
        pytest.param(r"\pL+", "1éß2", (1, 3), id="letters"),
        pytest.param(r"\p{Lu}", "aÉ", (1, 2), id="upper"),
        pytest.param(r"\P{L}+", "ab12", (2, 4), id="not-letters"),
        pytest.param(r"(?i)k", "\u212a", (0, 1), id="kelvin-sign"),
        pytest.param(r"(?i)[r-t]", "\u017f", (0, 1), id="long-s"),
        pytest.param("(?i)[^x]", "X", None, id="negated-any-case"),
        pytest.param(r"\B", "", (0, 0), id="no-edge-in-empty-text"),
        pytest.param(r"\bé", "aé", (1, 2), id="word-edges-are-of-ascii"),
        pytest.param(r"[\d\-a]+", "x-1a", (1, 4), id="class-in-brackets"),
        pytest.param(r"\101\x41", "AA", (0, 2), id="octal-and-hex"),
        pytest.param("a{,3}", "aa{,3}", (1, 6), id="no-lower-bound-is-text"),
        pytest.param("(?s).+", "a\nb", (0, 3), id="dot-all"),
        pytest.param("(?m)^b$", "a\nb", (2, 3), id="lines"),
        pytest.param(r"b\z", "b\n", None, id="end-of-text"),
        pytest.param("(?i:a)b", "AB", None, id="flag-of-a-group"),
    ],
)
def test_matches_are_those_of_re2(pattern: str, text: str, span: tuple[int, int] | None):
    assert Pattern(pattern).find(text) == span


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        ("a*+", "invalid nested repetition operator: `*+`"),
        ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("(?#a)", "invalid or unsupported Perl syntax: `(?#`"),
        ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
        ("(?>a)", "invalid or unsupported Perl syntax: `(?>`"),
        ("(?P=n)", "invalid or unsupported Perl syntax: `(?P`"),
        (r"a\Z", r"invalid escape sequence: `\Z`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("(a{100}){100}", "invalid repeat count: `{100}`"),
        ("a{" + "9" * 5_000 + "}", "invalid repeat count: `{" + "9" * 5_000 + "}`"),
        ("(a", "missing closing ): `(a`"),
        ("x[a", "missing closing ]: `[a`"),
        ("a)", "unexpected ): `a)`"),
        ("a|*", "missing argument to repetition operator: `*`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("[[:x:]]", "invalid character class range: `[:x:]`"),
        (r"\p{Greek}", r"invalid character class range: `\p{Greek}`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("(?P<a>x)(?P<a>y)", "invalid named capture: `(?P<a>`"),
    ],
)
def test_errors_are_those_of_go(pattern: str, error: str):
    with pytest.raises(PatternError) as raised:
        Pattern(pattern)
    assert str(raised.value) == error


@given(pattern=st.text("ab\\()[]{}|*+?^$.-:<>PpQEdx019,=!imsU\n", max_size=12))
def test_any_text_is_a_pattern_or_an_error(pattern: str):
    with contextlib.suppress(PatternError):
        Pattern(pattern).find("ab01\n")
