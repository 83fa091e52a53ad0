"""CEL, the language in which claims and classes select devices.

Text → tokens (`lexer`) → tree (`parser`, `macros`) → types (`checker`) → Python functions
(`evaluator`). What can be called is in `library`, what operators do in `operators`.

Written here because no package for Python has what Kubernetes' dialect needs: optional values, its
own libraries, comparison across number types, and the exact texts of errors
(docs/decisions/0003-own-cel.md).
"""

from kubestow.cel.environment import Environment, Program
from kubestow.cel.errors import CelError, CompileError
from kubestow.cel.values import Value

__all__ = ["CelError", "CompileError", "Environment", "Program", "Value"]
