"""Rules read one thing at a time, as slow as they are plain. Tests compare fast forms with them."""

import re

from kubestow.api.labels import parse_int64
from kubestow.api.taints import AnyTaint, AnyToleration


def tolerates(
    toleration: AnyToleration, taint: AnyTaint, *, comparison_operators: bool = False
) -> bool:
    """Whether one toleration accepts one taint (spec 01 §9)."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Lt" | "Gt" if comparison_operators:
            limit, value = _integer(toleration.value), _integer(taint.value)
            if limit is None or value is None:
                return False
            return value < limit if toleration.operator == "Lt" else value > limit
        case _:
            return False


def _integer(text: str) -> int | None:
    return parse_int64(text) if re.fullmatch("0|-?[1-9][0-9]*", text) else None
