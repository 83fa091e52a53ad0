"""The guide on plugins runs as it is written, and its tables name what there is."""

import ast
import doctest
import inspect
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kubestow.plugin.fast
from kubestow import testing
from kubestow.framework import plugin as contract
from kubestow.framework.node_plugin import NodeFilter
from kubestow.framework.reuse import FastPlugin, PodReads, Reads, Reuse, Rule
from kubestow.index.nodes import Nodes
from kubestow.index.tracked import TRACKED_MAX
from kubestow.plugins.loading import load_plugins
from kubestow.service.options import SchedulerOptions, parse_options

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "scripts"))

from pages import blocks  # noqa: E402  (found through the line above)

GUIDE = ROOT / "docs" / "guides" / "write-a-plugin.md"
TEXT = GUIDE.read_text(encoding="utf-8")
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`([^`]+)`")


def section(number: int) -> str:
    (found,) = re.findall(rf"^## {number}\. .*?(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    return found


def rows(text: str) -> list[list[str]]:
    """The cells of all tables, less heads and rulers."""
    lines = text.splitlines()
    is_row = [line.startswith("|") for line in lines]
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for number, line in enumerate(lines)
        if is_row[number] and is_row[number - 1] and not line.startswith("|---")
    ]


def words(text: str) -> set[str]:
    """All names that a text has in code between its blocks."""
    codes = _CODE.findall(_FENCED.sub("", text))
    return {name for code in codes for name in re.findall(r"\w+", code)}


# --- examples ---


def test_every_example_runs_and_shows_what_it_says() -> None:
    names: dict[str, Any] = {"__name__": "my_plugins"}
    for block in blocks(TEXT, "python", "pycon"):
        if block.language == "python":
            # Line numbers of a traceback are those of the guide.
            exec(compile("\n" * block.line + block.code, str(GUIDE), "exec"), names)
        else:
            run_session(block.code, names, block.line)


def run_session(code: str, names: dict[str, Any], line: int) -> None:
    session = doctest.DocTestParser().get_doctest(code, names, GUIDE.name, str(GUIDE), line)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    assert runner.run(session, out=report.append, clear_globs=False).failed == 0, "".join(report)
    names.update(session.globs)


def test_the_scheduler_takes_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The simulator's output is compared by `test_outputs`."""
    first = [*blocks(section(1))]
    for block in first:
        if "save" in block.options:
            (tmp_path / block.options["save"]).write_text(block.code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_plugins", raising=False)
    (command,) = (block.code for block in first if block.language == "sh")
    path, program, name, *flags = shlex.split(command)
    assert (path, program, name) == ("PYTHONPATH=.", "kubestow", "run")
    options = parse_options(flags)
    assert isinstance(options, SchedulerOptions)
    assert "PreferLabel" in load_plugins(options.config).registry


def test_the_base_class_shows_the_first_plugin() -> None:
    _, _, plugin = inspect.cleandoc(NodeFilter.__doc__ or "").partition("\n\n")
    assert plugin in TEXT


# --- tables ---


def test_every_extension_point_is_listed() -> None:
    assert [(method, answer) for method, answer, _ in rows(section(7))] == [
        (f"`{method}`", f"`{answer}`") for method, answer in extension_points()
    ]


def extension_points() -> Iterator[tuple[str, str]]:
    """Signature and answer of every method a plugin may have, in the order of the contract."""
    source = ast.parse(inspect.getsource(contract))
    for point in source.body:
        if not isinstance(point, ast.ClassDef) or not point.decorator_list:
            continue
        for method in point.body:
            if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                assert method.returns is not None
                keyword = "async " if isinstance(method, ast.AsyncFunctionDef) else ""
                arguments = ", ".join(argument.arg for argument in method.args.args[1:])
                answer = ast.unparse(method.returns).replace(" | ", " or ")
                yield f"{keyword}{method.name}({arguments})", answer


def test_everything_a_view_of_nodes_has_is_listed() -> None:
    offered = {name for name in dir(Nodes) if not name.startswith("_")}
    assert offered <= words(section(2))


def test_every_part_of_a_declaration_is_listed() -> None:
    first = [cells[0] for cells in rows(section(5))]
    fast = [
        f"{name}({', '.join([*inspect.signature(method).parameters][1:])})"
        for name, method in public(FastPlugin)
    ]
    methods = [name for name, _ in public(Rule)]
    names = (*Reuse._fields, *fast, *methods, *map(str_of, Reads), *map(str_of, PodReads))
    assert first == [f"`{name}`" for name in names]


def public(contract: type) -> Iterator[tuple[str, Any]]:
    """What the class itself has, in its order."""
    return ((name, value) for name, value in vars(contract).items() if not name.startswith("_"))


def str_of(reads: Reads | PodReads) -> str:
    return f"{type(reads).__name__}.{reads.name}"


def test_the_limit_of_kept_arrays_is_the_real_one() -> None:
    assert f"beyond {TRACKED_MAX} keys" in section(6)


def test_every_public_name_is_mentioned() -> None:
    code = "".join(block.code for block in blocks(TEXT, "python", "pycon"))
    spoken = words(TEXT) | set(re.findall(r"\w+", code))
    assert {*kubestow.plugin.__all__, *kubestow.plugin.fast.__all__} <= spoken


def test_the_helpers_for_tests_exist() -> None:
    named = {name for cells in rows(section(8)) for name in words(cells[0])}
    helpers = {name for name in named if name.startswith(("make_", "run_", "simulate"))}
    assert len(helpers) > 5
    assert helpers <= set(testing.__all__)
