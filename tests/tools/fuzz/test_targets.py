"""Some hundred arbitrary inputs for every decoder and parser; `make fuzz` runs many more."""

import pytest
from hypothesis import given, settings

from tools.fuzz.targets import TARGETS, Target


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_any_input_is_refused_or_read(target: Target) -> None:
    settings(max_examples=200)(given(target.inputs)(target.check))()
