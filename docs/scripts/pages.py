"""The pages of the project and their fenced blocks: what a page shows, and what it says of it.

A fence names a language and, if a script makes or uses the block, how (see `outputs`):

    ```console head=3 tail=1        commands after `$ `, and the output of each
    ```yaml file=deploy/x.yaml      the content of a file of the repository
    ```python save=my_plugins.py    a file that commands of the page use
    ```sh                           commands only
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
# Parts of one block: its fences are at the beginning of a line.
_BLOCK: Final = re.compile(
    r"^```(?P<language>\S*)(?P<options>(?: \w+=\S+)*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)


class Block(NamedTuple):
    language: str
    options: dict[str, str]
    code: str
    start: int  # of the code in the text of the page
    line: int  # before the code

    @property
    def end(self) -> int:
        return self.start + len(self.code)


def pages() -> list[Path]:
    """All pages but those of the specification, which shows no output of this project."""
    folders = (ROOT / "conformance", ROOT / "examples")
    found = [*ROOT.glob("*.md"), *(page for each in folders for page in each.rglob("*.md"))]
    found += [path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "spec"]
    return sorted(found)


def blocks(text: str, *languages: str) -> Iterator[Block]:
    """The fenced blocks of a page in order; of these languages, or of all."""
    for found in _BLOCK.finditer(text):
        if not languages or found["language"] in languages:
            yield Block(
                found["language"],
                dict(option.split("=", 1) for option in found["options"].split()),
                found["code"],
                found.start("code"),
                text.count("\n", 0, found.start("code")),
            )


def commands(code: str) -> list[str]:
    """The commands of a console block, without what they print."""
    return [line.removeprefix("$ ") for line in code.splitlines() if line.startswith("$ ")]


def replace_section(text: str, name: str, body: str) -> str:
    """The document with what stands between the markers of this name replaced."""
    begin, end = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
    pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise ValueError(f'expected "{begin}" and later "{end}" exactly once, each on its own line')
    return pattern.sub(lambda _: f"{begin}\n{body.strip()}\n{end}", text)
