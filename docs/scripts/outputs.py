"""Makes the outputs and files that pages show: `make docs`. A test compares them with the pages.

Commands run with bash in a folder of their own that has the folders of the repository that users
have, the files that the page shows (`save=`) and the command `kubestow`. What they print is
written as a reader without a terminal gets it, cut at 100 columns; `head=` and `tail=` say how many
lines are shown of each end. A line or a part that is left out is shown as `…`.

Not here: how blocks are marked (`pages`), blocks of Python (tests run them as they are).
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pages import ROOT, Block, blocks, commands, pages

COLUMNS: Final = 100
COMMAND_S: Final = 600
ELLIPSIS: Final = "…"
# What commands of pages read.
_FOLDERS: Final = ("examples", "conformance", "deploy")


class OutputError(Exception):
    """A page cannot be made."""


def render(text: str) -> str:
    """The page with its outputs and files as they are now."""
    with tempfile.TemporaryDirectory(prefix="kubestow-docs-") as folder:
        return _render(text, Path(folder))


def _render(text: str, folder: Path) -> str:
    environment = prepare(folder)
    parts: list[str] = []
    end = 0
    for block in blocks(text):
        parts += [text[end : block.start], _made(block, folder, environment)]
        end = block.end
    return "".join([*parts, text[end:]])


def prepare(folder: Path) -> dict[str, str]:
    """The environment of a shell in this folder, which gets what commands of pages need."""
    programs = folder / "bin"
    programs.mkdir()
    kubestow = programs / "kubestow"
    # Pages set PYTHONPATH themselves, so that of this process goes before it.
    path = os.pathsep.join(filter(None, sys.path))
    kubestow.write_text(
        f'#!/bin/sh\nPYTHONPATH="{path}:$PYTHONPATH" exec "{sys.executable}" -u -m kubestow "$@"\n'
    )
    kubestow.chmod(0o755)
    for name in _FOLDERS:
        (folder / name).symlink_to(ROOT / name)
    return {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
    }


def _made(block: Block, folder: Path, environment: Mapping[str, str]) -> str:
    """The code of a block as it should be."""
    if "file" in block.options:
        return (ROOT / block.options["file"]).read_text(encoding="utf-8")
    if "save" in block.options:
        (folder / block.options["save"]).write_text(block.code, encoding="utf-8")
    if block.language != "console":
        return block.code
    return "".join(
        f"$ {command}\n" + _shown(_run(command, folder, environment), block.options)
        for command in commands(block.code)
    )


def _run(command: str, folder: Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=COMMAND_S,
    )
    if done.returncode:
        raise OutputError(f"`{command}` ended with code {done.returncode}:\n{done.stdout}")
    return done.stdout


def _shown(output: str, options: Mapping[str, str]) -> str:
    lines = [_cut(line.rstrip()) for line in output.splitlines()]
    if "head" in options or "tail" in options:
        head, tail = int(options.get("head", 0)), int(options.get("tail", 0))
        if len(lines) > head + tail:
            lines = [*lines[:head], ELLIPSIS, *lines[len(lines) - tail :]]
    return "".join(f"{line}\n" for line in lines)


def _cut(line: str) -> str:
    return line if len(line) <= COLUMNS else line[: COLUMNS - 2].rstrip() + f" {ELLIPSIS}"


def main() -> None:
    for page in pages():
        text = page.read_text(encoding="utf-8")
        try:
            made = render(text)
        except OutputError as error:
            sys.exit(f"{page.relative_to(ROOT)}: {error}")
        if made != text:
            page.write_text(made, encoding="utf-8")
            print(f"wrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
