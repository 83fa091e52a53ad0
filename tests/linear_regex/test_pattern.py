"""Patterns: the same results as Python's engine, in linear time."""

import re

import pytest
from hypothesis import given
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
