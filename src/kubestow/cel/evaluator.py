"""Syntax trees to Python functions.

An expression runs once per device, for thousands of devices, so the tree is walked only once, and
the resulting nested functions only compute.
"""

from collections.abc import Callable, Iterable
from typing import Final

from kubestow.cel import operators, syntax
from kubestow.cel.costs import LIST_COST, MAP_COST, OPERATOR_RULES, Rule, call_rule
from kubestow.cel.errors import CelError
from kubestow.cel.frame import Frame, Run, as_bool, unwrapped
from kubestow.cel.functions import FunctionTable
from kubestow.cel.loops import compile_loop
from kubestow.cel.meter import COST_ERROR, CostError, CostMeter
from kubestow.cel.operators import no_overload
from kubestow.cel.syntax import (
    Bind,
    Call,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    Loop,
    MapLiteral,
    OptionalMap,
    Select,
)
from kubestow.cel.values import NONE, CelMap, OptionalValue, TypeValue, Value, equal, map_key

_Operator = Callable[[Value, Value], Value]
_MeteredOperator = Callable[[CostMeter, Value, Value], Value]


def _unmetered(code: _Operator) -> _MeteredOperator:
    def call(_meter: CostMeter, first: Value, second: Value) -> Value:
        return code(first, second)

    return call


_ARITHMETIC: Final[dict[str, _Operator]] = {
    syntax.SUBTRACT: operators.subtract,
    syntax.MULTIPLY: operators.multiply,
    syntax.DIVIDE: operators.divide,
    syntax.MODULO: operators.modulo,
}
_QUALIFIERS: Final[dict[str, _Operator]] = {
    syntax.INDEX: operators.select,
    syntax.OPTIONAL_INDEX: operators.select_optionally,
    syntax.OPTIONAL_SELECT: operators.select_optionally,
}
_METERED: Final[dict[str, _MeteredOperator]] = {
    syntax.ADD: operators.add,
    syntax.EQUALS: equal,
    syntax.NOT_EQUALS: operators.not_equal,
    syntax.LESS: _unmetered(operators.less),
    syntax.LESS_EQUALS: _unmetered(operators.less_equals),
    syntax.GREATER: _unmetered(operators.greater),
    syntax.GREATER_EQUALS: _unmetered(operators.greater_equals),
    syntax.IN: operators.contains,
}
_CONVERSIONS: Final = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "uint")
)


class Evaluator:
    """Compiles syntax trees that have passed the checker to functions."""

    def __init__(self, table: FunctionTable) -> None:
        self._table = table

    def compile(self, expr: Expr) -> Run:
        match expr:
            case Literal():
                value = expr.value
                return lambda frame: value
            case Ident() | Select():
                return self._path(expr)
            case Call(function=name) if name in _QUALIFIERS:
                return self._path(expr)
            case Call():
                return self._call(expr)
            case ListLiteral():
                return self._list(expr)
            case MapLiteral():
                return self._map(expr)
            case Loop():
                return compile_loop(expr, self.compile)
            case Bind():
                return self._bind(expr)
            case OptionalMap():
                return self._optional_map(expr)

    def _all(self, exprs: Iterable[Expr]) -> tuple[Run, ...]:
        return tuple(self.compile(expr) for expr in exprs)

    # --- paths ---

    def _path(self, expr: Expr, *, is_free: bool = False) -> Run:
        """A variable or value with its fields and elements.

        It costs 1, and 1 for each field or element; `is_free` leaves out the first.
        """
        get, cost = self._steps(expr)
        cost -= is_free
        return _charged(get, cost) if cost else get

    def _steps(self, expr: Expr) -> tuple[Run, int]:
        """A path without the charge, and its cost."""
        match expr:
            case Ident():
                return _ident(expr.name), 1
            case Select():
                operand, cost = self._steps(expr.operand)
                field = expr.field
                if expr.is_test:
                    return (lambda frame: operators.has(operand(frame), field)), cost
                return (lambda frame: operators.select(operand(frame), field)), cost + 1
            case Call(function=name) if name in _QUALIFIERS:
                operand, cost = self._steps(expr.args[0])
                look, key = _QUALIFIERS[name], self._branch(expr.args[1])
                return (lambda frame: look(operand(frame), key(frame))), cost + 1
            case _:
                return self.compile(expr), 1

    def _branch(self, expr: Expr) -> Run:
        """An expression where upstream resolves a path without charging its first step."""
        return self._path(expr, is_free=True) if _is_path(expr) else self.compile(expr)

    # --- calls ---

    def _call(self, call: Call) -> Run:
        name = call.function
        if name == syntax.CONDITIONAL:
            condition, first, second = call.args
            return _conditional(self.compile(condition), self._branch(first), self._branch(second))
        args = self._all(call.args)
        match name:
            case syntax.AND:
                return _decided_by(False, args)
            case syntax.OR:
                return _decided_by(True, args)
            case syntax.NOT:
                return _charged(_not(args[0]), 1)
            case syntax.NEGATE:
                operand = args[0]
                return _charged(lambda frame: operators.negate(operand(frame)), 1)
            case _ if name in _ARITHMETIC:
                code, (first, second) = _ARITHMETIC[name], args
                return _charged(lambda frame: code(first(frame), second(frame)), 1)
            case syntax.IN if _is_constant_list(call.args[1]):
                # Upstream looks the element up in a set.
                return _binary(operators.contains, _free, *args)
            case _ if name in _METERED:
                return _binary(_METERED[name], OPERATOR_RULES[name], *args)
            case _ if call.target is None:
                function = self._table.functions[name].call
            case _:
                args = (self.compile(call.target), *args)
                function = self._table.methods[name].call
        if name in _CONVERSIONS and len(call.args) == 1 and isinstance(call.args[0], Literal):
            constant = args[0]  # Upstream converts constants when it compiles.
            return lambda frame: function(frame, constant(frame))
        return _call_of(function, call_rule(name), args)

    # --- literals ---

    def _list(self, expr: ListLiteral) -> Run:
        elements = self._all(expr.elements)
        if _is_constant_list(expr):
            constant = tuple(element(Frame({})) for element in elements)
            return lambda frame: constant
        optional = expr.optional
        if not optional:
            return _charged(
                lambda frame: tuple([element(frame) for element in elements]), LIST_COST
            )

        def run(frame: Frame) -> Value:
            given: list[Value] = []
            for position, element in enumerate(elements):
                value = element(frame)
                if position not in optional:
                    given.append(value)
                elif unwrapped(value).has_value:
                    given.append(unwrapped(value).value)
            return tuple(given)

        return _charged(run, LIST_COST)

    def _map(self, expr: MapLiteral) -> Run:
        keys, values, optional = self._all(expr.keys), self._all(expr.values), expr.optional

        def run(frame: Frame) -> Value:
            entries: CelMap = {}
            for position, (key, value) in enumerate(zip(keys, values, strict=True)):
                hashed, given = map_key(key(frame)), value(frame)
                if position in optional:
                    if not unwrapped(given).has_value:
                        continue
                    given = unwrapped(given).value
                if hashed in entries:
                    raise CelError("insert failed: key already exists")
                entries[hashed] = given
            return entries

        is_constant = all(isinstance(part, Literal) for part in (*expr.keys, *expr.values))
        return run if is_constant else _charged(run, MAP_COST)

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
            before = frame.cost_left
            optional = unwrapped(target(frame))
            frame.charge(1)  # hasValue()
            if not optional.has_value:
                return NONE
            # Upstream evaluates the target again for value(), and makes an optional of the result.
            frame.charge(before - frame.cost_left + (not is_flat))
            outer = frame.variables
            frame.variables = {**outer, variable: optional.value}
            try:
                result = body(frame)
            finally:
                frame.variables = outer
            return result if is_flat else OptionalValue(result)

        return run


# --- Charges ----------------------------------------------------------------------------------


def _charged(run: Run, cost: int) -> Run:
    def charged(frame: Frame) -> Value:
        frame.cost_left -= cost
        if frame.cost_left < 0:
            raise CostError(COST_ERROR)
        return run(frame)

    return charged


def _binary(code: Callable[..., Value], rule: Rule, first: Run, second: Run) -> Run:
    def run(frame: Frame) -> Value:
        left, right = first(frame), second(frame)
        frame.cost_left -= rule(frame, left, right)
        if frame.cost_left < 0:
            raise CostError(COST_ERROR)
        return code(frame, left, right)

    return run


def _call_of(function: Callable[..., Value], rule: Rule, args: tuple[Run, ...]) -> Run:
    def run(frame: Frame) -> Value:
        values = [arg(frame) for arg in args]
        frame.charge(rule(frame, *values))
        return function(frame, *values)

    return run


def _free(_frame: Frame, _first: Value, _second: Value) -> int:
    return 0


def _is_path(expr: Expr) -> bool:
    return isinstance(expr, Ident | Select) or (
        isinstance(expr, Call) and expr.function in _QUALIFIERS
    )


def _is_constant_list(expr: Expr) -> bool:
    return isinstance(expr, ListLiteral) and all(
        isinstance(element, Literal) for element in expr.elements
    )


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
            except CostError:
                raise
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
    return lambda frame: not as_bool(operand(frame))


def _conditional(condition: Run, first: Run, second: Run) -> Run:
    return lambda frame: first(frame) if as_bool(condition(frame)) else second(frame)
