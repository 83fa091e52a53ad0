"""Texts in Markdown that is published: they stay texts, as their authors are not trusted.

GitHub and GitLab also read a text after Markdown has been: `@name` notifies, an address becomes a
link. A space without width keeps them from it, as backslashes do not.
"""

import html
import re
from typing import Final

from kubestow.redaction import printable

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~])")
_ACTIVE: Final = re.compile(r"(@|:(?=//)|www(?=\.))", re.IGNORECASE)
_NO_WIDTH: Final = r"\1&#8203;"


def plain(text: str) -> str:
    """A text on one line, also in a cell of a table."""
    return _ACTIVE.sub(_NO_WIDTH, _SPECIAL.sub(r"\\\1", _line(text)))


def plain_html(text: str) -> str:
    """A text on one line inside of HTML, which an empty line would end."""
    return _ACTIVE.sub(_NO_WIDTH, html.escape(_line(text), quote=False))


def _line(text: str) -> str:
    return printable(" ".join(text.split()))
