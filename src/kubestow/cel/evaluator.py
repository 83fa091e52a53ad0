"""Syntax trees to Python functions.

An expression runs once per device, for thousands of devices, so the tree is walked only once, and
the resulting nested functions only compute.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cmp_to_key
from typing import Final

from kubestow.cel import operators, syntax
from kubestow.cel.errors import CelError
from kubestow.cel.functions import FunctionTable
from kubestow.cel.operators import no_overload
from kubestow.cel.syntax import (
    Bind,
    Call,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    Loop,
    LoopKind,
    MapLiteral,
    OptionalMap,
    Select,
)
from kubestow.cel.values import (
    NONE,
    CelMap,
    OptionalValue,
    TypeValue,
    Value,
    equal,
    is_list,
    is_map,
    keys_of,
    map_key,
)

COST_MAX: Final = 1_000_000
COST_ERROR: Final = "operation cancelled: actual cost limit exceeded"

_BINARY: Final[dict[str, Callable[[Value, Value], Value]]] = {
    syntax.ADD: operators.add,
    syntax.SUBTRACT: operators.subtract,
    syntax.MULTIPLY: operators.multiply,
    syntax.DIVIDE: operators.divide,
    syntax.MODULO: operators.modulo,
    syntax.EQUALS: equal,
    syntax.NOT_EQUALS: operators.not_equal,
    syntax.LESS: operators.less,
    syntax.LESS_EQUALS: operators.less_equals,
    syntax.GREATER: operators.greater,
    syntax.GREATER_EQUALS: operators.greater_equals,
    syntax.IN: operators.contains,
    syntax.INDEX: operators.select,
    syntax.OPTIONAL_INDEX: operators.select_optionally,
    syntax.OPTIONAL_SELECT: operators.select_optionally,
}


class Frame:
    """One evaluation: the values of the variables, and the cost that is left.

    Only loops are charged, with the size of their body: nothing else can run for long.
    """

    __slots__ = ("budget", "variables")

    def __init__(self, variables: Mapping[str, Value]) -> None:
        self.variables = dict(variables)
        self.budget = COST_MAX

    def charge(self, cost: int) -> None:
        self.budget -= cost
        if self.budget < 0:
            raise CelError(COST_ERROR)


Run = Callable[[Frame], Value]


class Evaluator:
    """Compiles syntax trees that have passed the checker to functions."""

    def __init__(self, table: FunctionTable) -> None:
        self._table = table

    def compile(self, expr: Expr) -> Run:
        match expr:
            case Literal():
                value = expr.value
                return lambda frame: value
            case Ident():
                return _ident(expr.name)
            case Select():
                return self._select(expr)
            case Call():
                return self._call(expr)
            case ListLiteral():
                return self._list(expr)
            case MapLiteral():
                return self._map(expr)
            case Loop():
                return self._loop(expr)
            case Bind():
                return self._bind(expr)
            case OptionalMap():
                return self._optional_map(expr)

    def _all(self, exprs: Iterable[Expr]) -> tuple[Run, ...]:
        return tuple(self.compile(expr) for expr in exprs)

    def _select(self, expr: Select) -> Run:
        operand, field = self.compile(expr.operand), expr.field
        look = operators.has if expr.is_test else operators.select
        return lambda frame: look(operand(frame), field)

    # --- calls ---

    def _call(self, call: Call) -> Run:
        name = call.function
        args = self._all(call.args)
        match name:
            case syntax.AND:
                return _decided_by(False, args)
            case syntax.OR:
                return _decided_by(True, args)
            case syntax.NOT:
                return _not(args[0])
            case syntax.CONDITIONAL:
                return _conditional(*args)
            case syntax.NEGATE:
                operand = args[0]
                return lambda frame: operators.negate(operand(frame))
            case _ if name in _BINARY:
                code, (first, second) = _BINARY[name], args
                return lambda frame: code(first(frame), second(frame))
            case _ if call.target is None:
                function = self._table.functions[name].call
            case _:
                args = (self.compile(call.target), *args)
                function = self._table.methods[name].call
        if len(args) == 1:
            only = args[0]
            return lambda frame: function(only(frame))
        return lambda frame: function(*[arg(frame) for arg in args])

    # --- literals ---

    def _list(self, expr: ListLiteral) -> Run:
        elements = self._all(expr.elements)
        if all(isinstance(element, Literal) for element in expr.elements):
            constant = tuple(element(Frame({})) for element in elements)
            return lambda frame: constant
        optional = expr.optional
        if not optional:
            return lambda frame: tuple([element(frame) for element in elements])

        def run(frame: Frame) -> Value:
            given: list[Value] = []
            for position, element in enumerate(elements):
                value = element(frame)
                if position not in optional:
                    given.append(value)
                elif _unwrapped(value).has_value:
                    given.append(_unwrapped(value).value)
            return tuple(given)

        return run

    def _map(self, expr: MapLiteral) -> Run:
        keys, values, optional = self._all(expr.keys), self._all(expr.values), expr.optional

        def run(frame: Frame) -> Value:
            entries: CelMap = {}
            for position, (key, value) in enumerate(zip(keys, values, strict=True)):
                hashed, given = map_key(key(frame)), value(frame)
                if position in optional:
                    if not _unwrapped(given).has_value:
                        continue
                    given = _unwrapped(given).value
                if hashed in entries:
                    raise CelError("insert failed: key already exists")
                entries[hashed] = given
            return entries

        return run

    # --- names for values ---

    def _bind(self, expr: Bind) -> Run:
        variable, value, body = expr.variable, self.compile(expr.value), self.compile(expr.body)

        def run(frame: Frame) -> Value:
            outer = frame.variables
            frame.variables = {**outer, variable: value(frame)}
            try:
                return body(frame)
            finally:
                frame.variables = outer

        return run

    def _optional_map(self, expr: OptionalMap) -> Run:
        target, variable, body = self.compile(expr.target), expr.variable, self.compile(expr.body)
        is_flat = expr.is_flat

        def run(frame: Frame) -> Value:
            optional = _unwrapped(target(frame))
            if not optional.has_value:
                return NONE
            outer = frame.variables
            frame.variables = {**outer, variable: optional.value}
            try:
                result = body(frame)
            finally:
                frame.variables = outer
            return result if is_flat else OptionalValue(result)

        return run

    def _loop(self, expr: Loop) -> Run:
        range_, body = self.compile(expr.range), self.compile(expr.body)
        condition = None if expr.condition is None else self.compile(expr.condition)
        fold = _FOLDS[expr.kind]
        variables = expr.variables
        cost = _size(expr.body) + (_size(expr.condition) if expr.condition is not None else 0) + 2

        def run(frame: Frame) -> Value:
            outer = frame.variables
            items = _items(range_(frame), len(variables))
            inner = frame.variables = dict(outer)

            def rounds() -> Iterable[tuple[Value, ...]]:
                for item in items:
                    frame.charge(cost)
                    inner.update(zip(variables, item, strict=True))
                    if condition is None or _as_bool(condition(frame)):
                        yield item

            try:
                return fold(rounds(), lambda: body(frame))
            finally:
                frame.variables = outer

        return run


# --- Logic ------------------------------------------------------------------------------------


def _ident(name: str) -> Run:
    kind = TypeValue(name)
    return lambda frame: frame.variables.get(name, kind)


def _decided_by(decisive: bool, args: tuple[Run, ...]) -> Run:
    """`&&` (decided by a false) and `||` (decided by a true).

    Spec 08 B8: an error counts only if no argument decides, before or after it.
    """

    def run(frame: Frame) -> Value:
        error: CelError | None = None
        for arg in args:
            try:
                value = arg(frame)
            except CelError as caught:
                error = error or caught
                continue
            if value is decisive:
                return decisive
            if not isinstance(value, bool):
                error = error or no_overload()
        if error is not None:
            raise error
        return not decisive

    return run


def _not(operand: Run) -> Run:
    return lambda frame: not _as_bool(operand(frame))


def _conditional(condition: Run, first: Run, second: Run) -> Run:
    return lambda frame: first(frame) if _as_bool(condition(frame)) else second(frame)


def _as_bool(value: Value) -> bool:
    if isinstance(value, bool):
        return value
    raise no_overload()


def _unwrapped(value: Value) -> OptionalValue:
    if isinstance(value, OptionalValue):
        return value
    raise no_overload()


# --- Loops ------------------------------------------------------------------------------------

Rounds = Iterable[tuple[Value, ...]]
Body = Callable[[], Value]


def _items(value: Value, variable_count: int) -> list[tuple[Value, ...]]:
    """The values of the variables in each round."""
    if is_list(value):
        if variable_count == 1:
            return [(element,) for element in value]
        return list(enumerate(value))
    if is_map(value):
        if variable_count == 1:
            return [(key,) for key in keys_of(value)]
        return list(zip(keys_of(value), value.values(), strict=True))
    raise no_overload()


def _quantified(decisive: bool) -> Callable[[Rounds, Body], Value]:
    def fold(rounds: Rounds, body: Body) -> Value:
        error: CelError | None = None
        for _ in rounds:
            try:
                value = body()
            except CelError as caught:
                if str(caught) == COST_ERROR:
                    raise
                error = error or caught
                continue
            if value is decisive:
                return decisive
            if not isinstance(value, bool):
                error = error or no_overload()
        if error is not None:
            raise error
        return not decisive

    return fold


def _exists_one(rounds: Rounds, body: Body) -> Value:
    return sum(_as_bool(body()) for _ in rounds) == 1


def _mapped(rounds: Rounds, body: Body) -> Value:
    return tuple([body() for _ in rounds])


def _filtered(rounds: Rounds, body: Body) -> Value:
    return tuple([item[0] for item in rounds if _as_bool(body())])


def _transformed_map(rounds: Rounds, body: Body) -> Value:
    return {map_key(item[0]): body() for item in rounds}


def _transformed_entries(rounds: Rounds, body: Body) -> Value:
    entries: CelMap = {}
    for _ in rounds:
        made = body()
        if not is_map(made):
            raise no_overload()
        for key, value in made.items():
            if key in entries:
                raise CelError("insert failed: key already exists")
            entries[key] = value
    return entries


def _sorted_by(rounds: Rounds, body: Body) -> Value:
    keyed = [(body(), item[0]) for item in rounds]
    keyed.sort(key=cmp_to_key(lambda first, second: operators.ordering(first[0], second[0])))
    return tuple([element for _, element in keyed])


_FOLDS: Final[dict[LoopKind, Callable[[Rounds, Body], Value]]] = {
    LoopKind.ALL: _quantified(False),
    LoopKind.EXISTS: _quantified(True),
    LoopKind.EXISTS_ONE: _exists_one,
    LoopKind.MAP: _mapped,
    LoopKind.FILTER: _filtered,
    LoopKind.TRANSFORM_MAP: _transformed_map,
    LoopKind.TRANSFORM_ENTRIES: _transformed_entries,
    LoopKind.SORT_BY: _sorted_by,
}


def _size(expr: Expr) -> int:
    """How many steps one evaluation takes; a nested loop counts once, it charges its rounds."""
    match expr:
        case Literal() | Ident():
            return 1
        case Select():
            return 1 + _size(expr.operand)
        case Call():
            target = 0 if expr.target is None else _size(expr.target)
            return 1 + target + sum(map(_size, expr.args))
        case ListLiteral():
            return 1 + sum(map(_size, expr.elements))
        case MapLiteral():
            return 1 + sum(map(_size, (*expr.keys, *expr.values)))
        case Loop():
            return 1 + _size(expr.range)
        case Bind():
            return 1 + _size(expr.value) + _size(expr.body)
        case OptionalMap():
            return 1 + _size(expr.target) + _size(expr.body)
