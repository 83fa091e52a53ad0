"""Messages of msgspec in plain words, as msgspec itself makes them."""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from kubestow.api.plain_types import plain


class Part(msgspec.Struct, forbid_unknown_fields=True):
    name: str


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (1, str, "expected a string; put it in quotes"),
        (1, str | None, "expected a string; put it in quotes"),
        ([], str, "expected a string"),
        ("x", int, "expected a whole number"),
        ("x", float | int, "expected a number"),
        ([], str | int | float | None, "expected a number or a string"),
        ([], str | int | bool | None, "expected true or false, a whole number or a string"),
        ("x", list[int], "expected a list"),
        ("x", Part, "expected a map"),
        (-1.0, Annotated[float, Meta(ge=0)], "expected at least 0"),
        (0.5, Annotated[float, Meta(gt=0.5)], "expected more than 0.5"),
        (10**8, Annotated[int, Meta(le=86_400_000)], "expected at most 86400000"),
        (7.5, Annotated[float, Meta(lt=7.5)], "expected less than 7.5"),
        ("", Annotated[str, Meta(min_length=1)], "expected a string of at least 1 character"),
        (
            [1, 2, 3],
            Annotated[list[int], Meta(max_length=2)],
            "expected a list of at most 2 entries",
        ),
        ("B", Annotated[str, Meta(pattern="^[a-z]+$")], "expected a string of the form ^[a-z]+$"),
        ({"name": "a", "nam": 1}, Part, 'there is no field "nam"'),
        ({}, Part, 'the field "name" is missing'),
        ("soon", datetime, 'expected a time such as "2026-01-31T12:00:00Z"'),
        ("c", Literal["a", "b"], "Invalid enum value 'c'"),
    ],
)
def test_types_and_limits_are_named_in_plain_words(value: Any, kind: Any, text: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(value, kind)
    assert plain(str(caught.value)) == text
