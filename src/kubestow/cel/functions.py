"""Functions by name: their parameters, their results and their code.

The checker looks a function up by the types of the arguments before an expression runs, the
evaluator by their values when it runs: types that are known only then must match too.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kubestow.cel.errors import CelError
from kubestow.cel.meter import CostMeter
from kubestow.cel.static_types import (
    DYN,
    A,
    B,
    Bindings,
    Type,
    accepts,
    joined,
    substituted,
)
from kubestow.cel.values import NO_OVERLOAD, Value, type_name

Implementation = Callable[..., Value]
_ANYTHING: Final = frozenset((DYN, A, B))


class Overload(NamedTuple):
    """One way to call a function; of a method the first parameter is the target.

    The code of a metered one gets the meter of the evaluation before the arguments: it charges
    what the size of its arguments does not show.
    """

    name: str
    params: tuple[Type, ...]
    result: Type
    code: Implementation
    is_method: bool = False
    is_metered: bool = False


def function(name: str, params: Sequence[Type], result: Type, code: Implementation) -> Overload:
    return Overload(name, tuple(params), result, code)


def method(name: str, params: Sequence[Type], result: Type, code: Implementation) -> Overload:
    return Overload(name, tuple(params), result, code, is_method=True)


def metered(overload: Overload) -> Overload:
    return overload._replace(is_metered=True)


class Function:
    """All ways to call a function of one name, or all ways to call a method of one name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.overloads: list[Overload] = []
        # By the Python types of the arguments; filled on first use.
        self._code: dict[tuple[type, ...], Implementation] = {}

    def result_type(self, args: Sequence[Type]) -> Type | None:
        """The type of a call with such arguments; None if no overload matches."""
        result: Type | None = None
        for overload in self.overloads:
            bindings: Bindings = {}
            if len(overload.params) == len(args) and all(
                accepts(param, arg, bindings)
                for param, arg in zip(overload.params, args, strict=True)
            ):
                given = substituted(overload.result, bindings)
                result = given if result is None else joined(result, given)
        return result

    def call(self, meter: CostMeter, *args: Value) -> Value:
        kinds = tuple(map(type, args))
        code = self._code.get(kinds)
        if code is None:
            code = self._code[kinds] = self._find(args)
        return code(meter, *args)

    def _find(self, args: tuple[Value, ...]) -> Implementation:
        names = [type_name(arg) for arg in args]
        for overload in self.overloads:
            if len(overload.params) == len(names) and all(
                param in _ANYTHING or param.name == name
                for param, name in zip(overload.params, names, strict=True)
            ):
                return overload.code if overload.is_metered else _ignoring_meter(overload.code)
        text = f"{NO_OVERLOAD}: {self.name}({', '.join(names)})"

        def fail(*_: Value) -> Value:
            raise CelError(text)

        return fail


def _ignoring_meter(code: Implementation) -> Implementation:
    def call(_meter: CostMeter, *args: Value) -> Value:
        return code(*args)

    return call


class FunctionTable:
    """Every function and method an expression may call."""

    def __init__(self, overloads: Iterable[Overload]) -> None:
        self._functions: dict[str, Function] = {}
        self._methods: dict[str, Function] = {}
        for overload in overloads:
            table = self._methods if overload.is_method else self._functions
            entry = table.setdefault(overload.name, Function(overload.name))
            entry.overloads.append(overload)

    @property
    def functions(self) -> Mapping[str, Function]:
        return self._functions

    @property
    def methods(self) -> Mapping[str, Function]:
        return self._methods

    def namespaced(self) -> frozenset[str]:
        """Names with a dot, which must not be parsed as methods of a variable."""
        return frozenset(name for name in self._functions if "." in name)
