"""Rules are asked once per distinct value, or once per node if those are fewer."""

import numpy as np
import pytest

from kubestow.index.distinct import per_distinct


@pytest.mark.parametrize(
    ("ids", "asked_max"),
    [
        pytest.param([0, 1, 2, 1, 0, 2, 2, 1], 3, id="more-nodes-than-values"),
        pytest.param([2], 1, id="fewer-nodes-than-values"),
        pytest.param([], 0, id="no-nodes"),
    ],
)
def test_the_rule_is_asked_as_seldom_as_possible(ids: list[int], asked_max: int) -> None:
    asked: list[str] = []

    def rule(value: str) -> int:
        asked.append(value)
        return len(value)

    answers = per_distinct(np.array(ids, np.int32), ["", "a", "bb"], rule, np.int64)
    assert answers.tolist() == ids
    assert answers.dtype == np.int64
    assert len(asked) == asked_max
