"""docs/glossary.md names what exists, each word once, and no class has the name of another."""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "kubestow"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| word ", "| name "))
]
WORDS = [row for row in ROWS if len(row) == 3]
TWICE = {row[0].strip("`") for row in ROWS if len(row) == 2}


def names(path: Path) -> set[str]:
    """The classes of a file, and the names of the module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    targets = [node.targets[0] for node in tree.body if isinstance(node, ast.Assign)]
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef)} | {
        target.id for target in targets if isinstance(target, ast.Name)
    }


def test_every_word_has_one_row() -> None:
    words = Counter(word for row in WORDS for word in re.split(r", ", row[0]))
    assert len(words) > 40
    assert [word for word, count in words.items() if count > 1] == []


def test_every_place_exists() -> None:
    for word, _, where in WORDS:
        path, *classes = re.findall(r"`([^`]+)`", where)
        assert (PACKAGE / path).is_file(), word
        assert set(classes) <= names(PACKAGE / path), word


def test_class_names_stand_twice_only_where_the_page_says_so() -> None:
    found = Counter(
        node.name
        for package in (PACKAGE, ROOT / "tools")
        for path in package.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in found.items() if count > 1} == TWICE
