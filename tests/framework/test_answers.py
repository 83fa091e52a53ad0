"""Answers that a method must not give."""

import pytest

from kubestow.errors import WrongAnswerError
from kubestow.framework.answers import no_answer, truth_answer


def test_a_method_without_result_returns_none() -> None:
    no_answer(None, "Mine", "unreserve")
    with pytest.raises(WrongAnswerError, match=r'"Mine".*unreserve'):
        no_answer(False, "Mine", "unreserve")


def test_a_truth_is_true_or_false() -> None:
    assert truth_answer(True, "Mine", "is_eligible") is True
    with pytest.raises(WrongAnswerError, match="expected True or False"):
        truth_answer(1, "Mine", "is_eligible")
