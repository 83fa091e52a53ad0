"""Text of the page is readable in both themes: contrast of at least 4.5 to 1 (WCAG AA)."""

import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "web/src/style/themes.css").read_text(encoding="utf-8")
BLOCKS = re.findall(r"\{(.*?)\}", TEXT, re.DOTALL)
COLOURS = [dict(re.findall(r"--([a-z0-9-]+): #([0-9a-f]{6});", block)) for block in BLOCKS]
LIGHT, DARK = COLOURS[0], COLOURS[1]

ON_TEXT = [
    ("ink", "surface"),
    ("ink", "bg"),
    ("ink", "surface-2"),
    ("ink-2", "surface"),
    ("ink-2", "bg"),
    ("ink-2", "surface-2"),
    ("accent", "surface"),
    ("accent", "accent-soft"),
    ("good", "good-soft"),
    ("warn", "warn-soft"),
    ("bad", "bad-soft"),
    ("bad", "surface"),
    ("surface", "accent"),
    ("surface", "ink"),
    ("surface", "bad"),
]
# Lines, marks and the ring of the focus: 3 to 1.
ON_MARKS = [
    ("focus", "surface"),
    ("focus", "bg"),
    ("alert-mark", "surface"),
    *((f"place-{index}", "surface") for index in range(6)),
]


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_computed_as_in_the_standard() -> None:
    assert contrast("000000", "ffffff") == pytest.approx(21)
    assert contrast("777777", "ffffff") == pytest.approx(4.48, abs=0.01)


def test_both_themes_name_the_same_colours() -> None:
    # The first block has other properties as well, the second only colours that differ.
    assert set(LIGHT) == set(DARK)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), ON_TEXT)
def test_text_is_readable(theme: dict[str, str], text: str, ground: str) -> None:
    assert contrast(theme[text], theme[ground]) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("mark", "ground"), ON_MARKS)
def test_marks_are_visible(theme: dict[str, str], mark: str, ground: str) -> None:
    assert contrast(theme[mark], theme[ground]) >= 3
