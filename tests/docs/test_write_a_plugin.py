"""The guide on plugins runs as it is written, and its tables name what there is."""

import ast
import doctest
import inspect
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import kubestow.plugin
from kubestow import testing
from kubestow.framework import plugin as contract
from kubestow.framework.node_plugin import NodeFilter
from kubestow.framework.reuse import Reads, Reuse
from kubestow.index.nodes import Nodes
from kubestow.index.tracked import TRACKED_MAX
from kubestow.plugins.loading import load_plugins
from kubestow.service.cli import main
from kubestow.service.options import SchedulerOptions, parse_options

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "write-a-plugin.md"
TEXT = GUIDE.read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`([^`]+)`")


class Block(NamedTuple):
    language: str
    code: str
    line: int


def blocks(text: str, *languages: str) -> Iterator[Block]:
    for found in _BLOCK.finditer(text):
        if found["language"] in languages:
            line = text.count("\n", 0, found.start("code"))
            yield Block(found["language"], found["code"], line)


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
    codes = _CODE.findall(_BLOCK.sub("", text))
    return {name for code in codes for name in re.findall(r"\w+", code)}


# --- examples ---


def test_every_example_runs_and_shows_what_it_says() -> None:
    names: dict[str, Any] = {"__name__": "my_plugins"}
    for language, code, line in blocks(TEXT, "python", "pycon"):
        if language == "python":
            # Line numbers of a traceback are those of the guide.
            exec(compile("\n" * line + code, str(GUIDE), "exec"), names)
        else:
            run_session(code, names, line)


def run_session(code: str, names: dict[str, Any], line: int) -> None:
    session = doctest.DocTestParser().get_doctest(code, names, GUIDE.name, str(GUIDE), line)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    assert runner.run(session, out=report.append, clear_globs=False).failed == 0, "".join(report)
    names.update(session.globs)


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands of the first section with what they show, in a folder with its files."""
    first = section(1)
    (tmp_path / "my_plugins.py").write_text(next(blocks(first, "python")).code)
    (tmp_path / "config.yaml").write_text(next(blocks(first, "yaml")).code)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_plugins", raising=False)
    (console,) = blocks(first, "console")
    return [part.splitlines() for part in console.code.split("$ PYTHONPATH=. kubestow ")[1:]]


def test_the_simulator_takes_the_configuration(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *shown = commands[0]
    monkeypatch.setattr(sys, "argv", ["kubestow", *shlex.split(command)])
    with pytest.raises(SystemExit) as raised:
        main()
    assert not raised.value.code
    expected = set(shown) - {"..."}
    assert expected
    assert expected <= set(capsys.readouterr().out.splitlines())


def test_the_scheduler_takes_the_configuration(commands: list[list[str]]) -> None:
    name, *flags = shlex.split(commands[1][0])
    assert name == "run"
    options = parse_options(flags)
    assert isinstance(options, SchedulerOptions)
    assert "PreferLabel" in load_plugins(options.config).registry


def test_the_readme_shows_the_first_plugin() -> None:
    (block,) = blocks((ROOT / "README.md").read_text(encoding="utf-8"), "python")
    imports, _, plugin = block.code.partition("\n\n\n")
    assert plugin in TEXT
    names: dict[str, Any] = {}
    exec(imports, names)
    assert names["NodeFilter"] is NodeFilter


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
    assert first == [f"`{name}`" for name in (*Reuse._fields, *map(str_of, Reads))]


def str_of(reads: Reads) -> str:
    return f"Reads.{reads.name}"


def test_the_limit_of_kept_arrays_is_the_real_one() -> None:
    assert f"beyond {TRACKED_MAX} keys" in section(6)


def test_every_public_name_is_mentioned() -> None:
    code = "".join(block.code for block in blocks(TEXT, "python", "pycon"))
    spoken = words(TEXT) | set(re.findall(r"\w+", code))
    assert set(kubestow.plugin.__all__) <= spoken


def test_the_helpers_for_tests_exist() -> None:
    named = {name for cells in rows(section(8)) for name in words(cells[0])}
    helpers = {name for name in named if name.startswith(("make_", "run_", "simulate"))}
    assert len(helpers) > 5
    assert helpers <= set(testing.__all__)
