"""Text in quotes as Go prints it."""

import pytest

from kubestow.plugins.dynamic_resources.binding_conditions import quoted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '""'),
        ("plain text", '"plain text"'),
        ('a "b" \\', '"a \\"b\\" \\\\"'),
        ("tab\tline\nbell\a", '"tab\\tline\\nbell\\a"'),
        ("\x00\x1b\x7f", '"\\x00\\x1b\\x7f"'),
        ("Größe 日本 ☃", '"Größe 日本 ☃"'),
        ("\u00a0\u200b\U000e0001", '"\\u00a0\\u200b\\U000e0001"'),
    ],
)
def test_quoted(text: str, expected: str) -> None:
    assert quoted(text) == expected
