"""Changes that may be the first of two: each removes one thing that is in the way of the pod.

They need not help alone. The second change is then found as a single one.
"""

from collections.abc import Iterator

from kubestow.explain.suggestions.case import Case
from kubestow.explain.suggestions.change import Change


def first_steps(case: Case) -> Iterator[Change]:
    yield from ()
