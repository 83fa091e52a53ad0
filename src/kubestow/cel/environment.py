"""Expressions ready to run: text in, program out."""

from collections.abc import Iterable, Mapping

from kubestow.cel.checker import Checker, Objects
from kubestow.cel.errors import CelError, CompileError
from kubestow.cel.evaluator import Evaluator
from kubestow.cel.frame import Frame, Run
from kubestow.cel.functions import FunctionTable, Overload
from kubestow.cel.library import LIBRARY
from kubestow.cel.operators import OPERATORS
from kubestow.cel.parser import parse
from kubestow.cel.static_types import Type
from kubestow.cel.values import Value


class Program:
    """A compiled expression. `result_type` is the static type of its value."""

    __slots__ = ("_run", "result_type", "source")

    def __init__(self, source: str, result_type: Type, run: Run) -> None:
        self.source = source
        self.result_type = result_type
        self._run = run

    def evaluate(self, variables: Mapping[str, Value], share: float = 1.0) -> Value:
        """The value of the expression; raises CelError if it has none.

        With a `share` below 1 it may spend that much of the limits; CostError if it needs more.
        """
        frame = Frame(variables)
        frame.limit(share)
        try:
            return self._run(frame)
        except RecursionError as error:
            raise CelError("expression is nested too deeply") from error


class Environment:
    """The names and functions that expressions may use."""

    def __init__(
        self,
        variables: Mapping[str, Type],
        *,
        objects: Objects | None = None,
        functions: Iterable[Overload] = (),
    ) -> None:
        """`objects`: fields of types that are neither map nor value; `functions`: further ones."""
        self._variables = variables
        self._objects: Objects = {} if objects is None else objects
        self._table = FunctionTable((*OPERATORS, *LIBRARY, *functions))
        self._namespaced = self._table.namespaced()

    def compile(self, source: str) -> Program:
        """The program of an expression; raises CompileError."""
        try:
            tree = parse(source, self._namespaced)
            checker = Checker(source, self._table, self._variables, self._objects)
            result_type = checker.check(tree)
            return Program(source, result_type, Evaluator(self._table).compile(tree))
        except RecursionError as error:
            raise CompileError("expression is nested too deeply") from error
