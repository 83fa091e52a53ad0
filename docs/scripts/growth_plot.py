"""Draws cost over size: lines on two logarithmic axes, as an SVG with a ground of its own.

The ground is white whatever lies behind the picture, so that it reads the same on light and dark
pages. The same lines give the same bytes.
"""

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, NamedTuple

WIDTH: Final = 800
HEIGHT: Final = 420
LEFT, RIGHT, TOP, BOTTOM = 72, 540, 24, 368  # the frame; the legend stands right of it
COLORS: Final = ("#0b62c4", "#c2410c", "#15803d", "#9d174d", "#6d28d9", "#0f766e")
INK, GRID = "#1f2937", "#d1d5db"


class Line(NamedTuple):
    """One curve. Lines of one `group` share a color; those not `is_solid` are dashed."""

    group: str
    name: str
    is_solid: bool
    points: Sequence[tuple[float, float]]


class Scale(NamedTuple):
    """Where a value lies between two ends, in the logarithm."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.start + share * (self.end - self.start), 1)


def draw(lines: Sequence[Line], *, title: str, x_title: str, y_title: str) -> str:
    """The picture. Raises ValueError where a logarithm has nothing to show."""
    points = [point for line in lines for point in line.points]
    if not points or min(min(point) for point in points) <= 0:
        raise ValueError("cannot draw on logarithmic axes: every line needs points above 0")
    x = Scale(*_ends([at for at, _ in points]), LEFT, RIGHT)
    low, high = _decades([value for _, value in points])
    y = Scale(low, high, BOTTOM, TOP)
    groups = list(dict.fromkeys(line.group for line in lines))
    color = {group: COLORS[index % len(COLORS)] for index, group in enumerate(groups)}
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12" '
            f'fill="{INK}">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#ffffff"/>',
            *_x_axis(x, sorted({at for at, _ in points}), x_title),
            *_y_axis(y, y_title),
            *(part for line in lines for part in _curve(line, color[line.group], x, y)),
            *_legend(lines, color),
            "</svg>\n",
        )
    )


def _ends(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low / 2, high * 2)


def _decades(values: Sequence[float]) -> tuple[float, float]:
    low = 10.0 ** math.floor(math.log10(min(values)))
    high = 10.0 ** math.ceil(math.log10(max(values)))
    return (low, high) if high > low else (low, low * 10)


def _x_axis(x: Scale, ticks: Iterable[float], title: str) -> Iterable[str]:
    for tick in ticks:
        yield _segment(x(tick), TOP, x(tick), BOTTOM)
        yield _text(x(tick), BOTTOM + 18, f"{tick:,.0f}", "middle")
    yield _text((LEFT + RIGHT) / 2, HEIGHT - 10, title, "middle")


def _y_axis(y: Scale, title: str) -> Iterable[str]:
    tick = y.low
    while tick <= y.high * 1.001:
        yield _segment(LEFT, y(tick), RIGHT, y(tick))
        yield _text(LEFT - 8, y(tick) + 4, f"{tick:,.6g}", "end")
        tick *= 10
    middle = (TOP + BOTTOM) / 2
    yield (
        f'<text x="16" y="{middle}" text-anchor="middle" '
        f'transform="rotate(-90 16 {middle})">{escape(title)}</text>'
    )


def _curve(line: Line, color: str, x: Scale, y: Scale) -> Iterable[str]:
    places = [(x(at), y(value)) for at, value in line.points]
    path = " ".join(f"{across},{down}" for across, down in places)
    yield f'<polyline points="{path}" fill="none" {_stroke(line, color)}/>'
    yield from (f'<circle cx="{at}" cy="{down}" r="3" fill="{color}"/>' for at, down in places)


def _legend(lines: Sequence[Line], color: dict[str, str]) -> Iterable[str]:
    for index, line in enumerate(lines):
        down = TOP + 12 + 22 * index
        yield (
            f'<line x1="{RIGHT + 14}" y1="{down}" x2="{RIGHT + 40}" y2="{down}" '
            f"{_stroke(line, color[line.group])}/>"
        )
        yield _text(RIGHT + 46, down + 4, line.name, "start")


def _stroke(line: Line, color: str) -> str:
    dashes = "" if line.is_solid else ' stroke-dasharray="6 4"'
    return f'stroke="{color}" stroke-width="2"{dashes}'


def _segment(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{GRID}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
