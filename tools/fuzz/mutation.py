"""Many inputs from few: values that hypothesis made are changed at random, and made small again.

Hypothesis takes about 2 ms for an input, most parsers less than a tenth of that. So it makes a pool
for each target, and the bulk of a long run are changes of what is in the pool.
"""

# pyright: basic
# Inputs are values of any type, on purpose.

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from tools.fuzz.documents import changed_at
from tools.fuzz.texts import PIECES, damage

SHRINK_TRIES_MAX: Final = 3000
_PIECE_BYTES: Final = tuple(piece.encode("utf-8", "surrogatepass") for piece in PIECES)


class Mutator:
    """Changes the values of a pool."""

    def __init__(self, pool: Sequence[Any], rng: np.random.Generator) -> None:
        assert pool
        self._pool = pool
        self._rng = rng

    def next(self) -> Any:
        return self._changed(self._one_of(self._pool))

    def _changed(self, value: Any) -> Any:
        rng = self._rng
        match value:
            case str():
                return damage(value, [self._edit(PIECES) for _ in range(rng.integers(1, 4))])
            case bytes():
                text = value.decode("latin-1")
                pieces = [piece.decode("latin-1") for piece in _PIECE_BYTES]
                edits = [self._edit(pieces) for _ in range(rng.integers(1, 4))]
                return damage(text, edits).encode("latin-1")
            case tuple():
                return tuple(self._changed(part) for part in value)
            case list() if all(isinstance(part, str) for part in value):  # flags
                return [self._changed(part) for part in value]
            case dict() if all(isinstance(part, str) for part in value.values()):  # a query
                return {key: self._changed(part) for key, part in value.items()}
            case dict() | list():
                places = rng.random(rng.integers(1, 7)).tolist()
                how = self._one_of(("replace", "remove", "wrap", "rename"))
                return changed_at(value, places, how, self._other_value())
            case _:
                return value

    def _other_value(self) -> Any:
        kind = int(self._rng.integers(0, 8))
        numbers = (0, -1, 2**31, 2**63, 2**64, 1.5, 1e300)
        values = (None, True, [], {}, self._one_of(numbers), [None], {"": None})
        return values[kind] if kind < len(values) else self._one_of(PIECES)

    def _edit(self, pieces: Sequence[str]) -> tuple[float, float, str]:
        rng = self._rng
        piece = self._one_of(pieces) if rng.random() < 0.7 else chr(rng.integers(0, 256))
        return rng.random(), self._one_of((0.0, 0.0, 0.02, 0.2)), piece

    def _one_of(self, values: Sequence[Any]) -> Any:
        return values[int(self._rng.integers(0, len(values)))]


def shrunk(value: Any, fails: Callable[[Any], bool]) -> Any:
    """A smaller value that still fails; parts are left out for as long as one can be."""
    tries = 0
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in _smaller(value):
            tries += 1
            if tries > SHRINK_TRIES_MAX:
                return value
            if fails(candidate):
                value, is_smaller = candidate, True
                break
    return value


def _smaller(value: Any) -> Iterator[Any]:
    match value:
        case str():
            for start, end in _cuts(len(value)):
                yield value[:start] + value[end:]
        case bytes():
            for start, end in _cuts(len(value)):
                yield value[:start] + value[end:]
        case dict():
            for key in value:
                yield {k: v for k, v in value.items() if k != key}
            for key, part in value.items():
                for smaller in _smaller(part):
                    yield {**value, key: smaller}
        case list() | tuple():
            kind = type(value)
            for index, part in enumerate(value):
                if isinstance(value, list):
                    yield value[:index] + value[index + 1 :]
                for smaller in _smaller(part):
                    yield kind((*value[:index], smaller, *value[index + 1 :]))
        case _:
            return


def _cuts(length: int) -> Iterator[tuple[int, int]]:
    """Parts of a text to leave out, long ones first."""
    size = length
    while size:
        for start in range(0, length, size):
            yield start, start + size
        size //= 2
