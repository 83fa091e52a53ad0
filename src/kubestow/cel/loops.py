"""Macros over lists and maps, as Python loops.

Upstream expands a macro to a general loop with an accumulator. The costs here are those of its
parts, without the macro's own arguments, which charge themselves.
"""

from collections.abc import Callable, Iterable
from functools import cmp_to_key
from typing import Final, NamedTuple

from kubestow.cel import operators
from kubestow.cel.costs import each_with_each
from kubestow.cel.errors import CelError
from kubestow.cel.frame import Frame, Run, as_bool
from kubestow.cel.meter import CostError
from kubestow.cel.operators import no_overload
from kubestow.cel.syntax import Expr, Loop, LoopKind
from kubestow.cel.values import CelMap, Value, is_list, is_map, keys_of, map_key

Rounds = Iterable[tuple[Value, ...]]


class Fold(NamedTuple):
    """What a loop makes of its rounds, and what it costs."""

    code: Callable[[Frame, Rounds, Run], Value]
    round_cost: int  # of each round
    end_cost: int  # of the result


def compile_loop(expr: Loop, compile: Callable[[Expr], Run]) -> Run:
    range_, body = compile(expr.range), compile(expr.body)
    condition = None if expr.condition is None else compile(expr.condition)
    fold = _FOLDS[expr.kind]
    variables = expr.variables

    def run(frame: Frame) -> Value:
        outer = frame.variables
        items = _items(frame, range_(frame), len(variables))
        inner = frame.variables = dict(outer)

        def rounds() -> Rounds:
            for item in items:
                inner.update(zip(variables, item, strict=True))
                if condition is None or as_bool(condition(frame)):
                    frame.charge(fold.round_cost)
                    yield item

        try:
            value = fold.code(frame, rounds(), body)
        finally:
            frame.variables = outer
        frame.charge(fold.end_cost)
        return value

    return run


def _items(frame: Frame, value: Value, variable_count: int) -> Iterable[tuple[Value, ...]]:
    """The values of the variables in each round."""
    if is_list(value):
        frame.work(len(value) >> 4)
        return enumerate(value) if variable_count == 2 else zip(value, strict=True)
    if is_map(value):
        frame.work(len(value) >> 4)
        keys = keys_of(value)
        return zip(keys, value.values(), strict=True) if variable_count == 2 else zip(keys)
    raise no_overload()


def _quantified(decisive: bool, condition_cost: int) -> Callable[[Frame, Rounds, Run], Value]:
    def fold(frame: Frame, rounds: Rounds, body: Run) -> Value:
        error: CelError | None = None
        for _ in rounds:
            try:
                value = body(frame)
            except CostError:
                raise
            except CelError as caught:
                error = error or caught
                continue
            if value is decisive:
                frame.charge(condition_cost)  # it is evaluated once more, and ends the loop
                return decisive
            if not isinstance(value, bool):
                error = error or no_overload()
        if error is not None:
            raise error
        return not decisive

    return fold


def _exists_one(frame: Frame, rounds: Rounds, body: Run) -> Value:
    count = 0
    for _ in rounds:
        if as_bool(body(frame)):
            frame.charge(_COUNT_COST)
            count += 1
    return count == 1


def _mapped(frame: Frame, rounds: Rounds, body: Run) -> Value:
    return tuple([body(frame) for _ in rounds])


def _filtered(frame: Frame, rounds: Rounds, body: Run) -> Value:
    kept: list[Value] = []
    for item in rounds:
        if as_bool(body(frame)):
            frame.charge(_KEEP_COST)
            kept.append(item[0])
    return tuple(kept)


def _transformed_map(frame: Frame, rounds: Rounds, body: Run) -> Value:
    return {map_key(item[0]): body(frame) for item in rounds}


def _transformed_entries(frame: Frame, rounds: Rounds, body: Run) -> Value:
    entries: CelMap = {}
    for _ in rounds:
        made = body(frame)
        if not is_map(made):
            raise no_overload()
        frame.work(len(made))
        for key, value in made.items():
            if key in entries:
                raise CelError("insert failed: key already exists")
            entries[key] = value
    return entries


def _sorted_by(frame: Frame, rounds: Rounds, body: Run) -> Value:
    keyed = [(body(frame), item[0]) for item in rounds]
    frame.charge(each_with_each(frame, tuple([key for key, _ in keyed])))
    keyed.sort(key=cmp_to_key(lambda first, second: operators.ordering(first[0], second[0])))
    return tuple([element for _, element in keyed])


_COUNT_COST: Final = 2  # the accumulator and the addition
_KEEP_COST: Final = 13  # the accumulator, a list of the element, the addition
_ALL_CONDITION: Final = 2  # the accumulator, and whether it is not false
_EXISTS_CONDITION: Final = 3  # the same with a negation
_FOLDS: Final[dict[LoopKind, Fold]] = {
    LoopKind.ALL: Fold(_quantified(False, _ALL_CONDITION), _ALL_CONDITION + 1, 1),
    LoopKind.EXISTS: Fold(_quantified(True, _EXISTS_CONDITION), _EXISTS_CONDITION + 1, 1),
    LoopKind.EXISTS_ONE: Fold(_exists_one, 0, 2),
    LoopKind.MAP: Fold(_mapped, 12, 1),
    LoopKind.FILTER: Fold(_filtered, 0, 1),
    LoopKind.TRANSFORM_MAP: Fold(_transformed_map, 3, 1),
    LoopKind.TRANSFORM_ENTRIES: Fold(_transformed_entries, 2, 1),
    LoopKind.SORT_BY: Fold(_sorted_by, 12, 3),
}
