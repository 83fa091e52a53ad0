"""Numbers with their noun."""

import pytest

from kubestow.plural import counted, plural


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "pod", "0 pods"),
        (1200, "pod", "1,200 pods"),
        (1, "pod", "1 pod"),
        (2, "pod", "2 pods"),
        (1, "copy", "1 copy"),
        (3, "copy", "3 copies"),
        (1, "other node", "1 other node"),
    ],
)
def test_one_thing_is_not_many(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text


def test_a_mean_is_many_unless_it_is_one() -> None:
    assert plural("pod", 1.0) == "pod"
    assert plural("pod", 1.5) == "pods"
