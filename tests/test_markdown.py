"""Texts that others wrote, in Markdown that is published."""

import pytest

from kubestow.markdown import plain, plain_html


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("web → zone-ä", "web → zone-ä"),
        ("a | b\n| c |", r"a \| b \| c \|"),
        ("![x](y) *b* `c` <img>", r"!\[x\](y) \*b\* \`c\` \<img\>"),
        ("@org/team", "@&#8203;org/team"),
        ("https://evil.example", "https:&#8203;//evil.example"),
        ("WWW.evil.example", "WWW&#8203;.evil.example"),
        ("a\x1b[31m\u202eb", r"a\\x1b\[31m\\u202eb"),
    ],
)
def test_a_text_is_no_markup_mention_or_link(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_a_text_in_html_is_one_line_without_tags() -> None:
    assert plain_html("a\n\n<img src=x>\x1b & @b") == r"a &lt;img src=x&gt;\x1b &amp; @&#8203;b"
