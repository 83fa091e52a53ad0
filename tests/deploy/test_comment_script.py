"""The action keeps one comment: its own."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "action" / "comment.sh"
MARKER = "<!-- kubestow test -->"
# Lists the comments of a file, and writes down what else it is asked for.
GH = """#!/bin/sh
case "$*" in
  *--paginate*) shift 4; jq -r "$1" comments.json ;;
  *) echo "$@" >> requests.txt ;;
esac
"""


def _comment(number: int, author: str, body: str) -> dict[str, Any]:
    return {"id": number, "user": {"type": author}, "body": body}


@pytest.mark.skipif(shutil.which("jq") is None, reason="gh has jq built in, the test has not")
@pytest.mark.parametrize(
    ("comments", "request_text"),
    [
        ([], "api --method POST repos/o/r/issues/7/comments"),
        ([_comment(1, "User", f"{MARKER} mine")], "api --method POST repos/o/r/issues/7/comments"),
        (
            [_comment(1, "User", MARKER), _comment(2, "Bot", "other"), _comment(3, "Bot", MARKER)],
            "api --method PATCH repos/o/r/issues/comments/3",
        ),
    ],
)
def test_only_a_comment_of_a_program_is_replaced(
    tmp_path: Path, comments: list[dict[str, Any]], request_text: str
) -> None:
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)
    (tmp_path / "comments.json").write_text(json.dumps(comments))
    (tmp_path / "comment.md").write_text(f"{MARKER}\ntext\n")
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    names = {"FILE": "comment.md", "NUMBER": "7", "GITHUB_REPOSITORY": "o/r", "PATH": path}
    subprocess.run(["bash", str(SCRIPT)], cwd=tmp_path, env=names, check=True)
    (request,) = (tmp_path / "requests.txt").read_text().splitlines()
    assert request == f"{request_text} -F body=@comment.md"
