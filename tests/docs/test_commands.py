"""What pages name exists: commands with their options, targets of make, kinds, files."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubestow.cache.objects import GROUP_KINDS, ClusterObjects
from kubestow.cluster.resources import default_resources
from kubestow.service.cli import main
from kubestow.service.completion.table import read_table

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "scripts"))

from pages import blocks, commands, pages  # noqa: E402  (found through the line above)

PAGES = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in pages()}
REPLACE = PAGES["docs/guides/replace-kube-scheduler.md"]
_WORD = r"(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?"


def shown(program: str) -> Iterator[tuple[str, str]]:
    """Pages and the commands of this program on them, in blocks and in the text."""
    pattern = re.compile(rf"{_WORD}(?P<command>{program} [^\n]*)")
    for name, text in PAGES.items():
        lines = [line for block in blocks(text, "sh") for line in block.code.splitlines()]
        lines += [line for block in blocks(text, "console") for line in commands(block.code)]
        lines += re.findall(rf"`({program} [^`]+)`", text)
        for line in lines:
            if found := pattern.match(line):
                yield name, found["command"].split("#")[0].strip()


def arguments_of(command: str) -> list[str]:
    """Without the program; the text may name an option without its value."""
    words = shlex.split(command)[1:]
    is_cut = words[-1].startswith("--") and "=" not in words[-1]
    return [*words, "value"] if is_cut else words


# How kubectl runs the command as its plugin.
PLUGIN = "kubectl kubestow"
KUBESTOW = [
    pytest.param(name, command.removeprefix("kubectl "), id=command)
    for name, command in (*shown("kubestow"), *shown(PLUGIN))
]


def accepts(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> bool:
    """Whether the command line takes these options; `--help` keeps it from doing its work."""
    command, following = (*arguments, "")[:2]
    known = read_table()["commands"]
    position = 2 if command in known and following in known[command].get("commands", {}) else 1
    line = [*arguments[:position], "--help", *arguments[position:]]
    monkeypatch.setattr(sys, "argv", ["kubestow", *line])
    with pytest.raises(SystemExit) as raised:
        main()
    return not raised.value.code


@pytest.mark.parametrize(("page", "command"), KUBESTOW)
def test_the_command_line_accepts_what_pages_show(
    page: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert accepts(monkeypatch, arguments_of(command)), page


@pytest.mark.parametrize(
    "command", ["run", "simulate", "demo", "conformance", "bench", "bench day"]
)
def test_an_unknown_option_is_not_accepted(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not accepts(monkeypatch, [*command.split(), "--no-such-option"])


def test_commands_are_found_in_blocks_and_in_the_text() -> None:
    found = set(shown("kubestow"))
    assert ("README.md", "kubestow bench") in found
    assert ("docs/guides/replace-kube-scheduler.md", "kubestow conformance conformance") in found


OTHERS = [
    pytest.param(program, command, id=command)
    for program in ("kubectl", "helm")
    for name, command in shown(program)
    if not name.endswith("embedded-cluster.md")  # tests/e2e runs those
    and not command.startswith(PLUGIN)
]


@pytest.mark.slow  # large programs
@pytest.mark.parametrize(("program", "command"), OTHERS)
def test_other_programs_accept_what_pages_show(
    program: str, command: str, request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue(f"{program}_path")
    # What comes after a pipe is another command.
    arguments = shlex.split(command.partition(" | ")[0].partition(" > ")[0])[1:]
    done = subprocess.run([str(path), *arguments, "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_target_of_make_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = {(name, command.split()[1]) for name, command in shown("make")}
    assert len(named) > 10
    assert {(name, target) for name, target in named if target not in targets} == set()


# --- a copy of a cluster ---

# Read by admission, when pods are created: classes set their priority and overhead, templates
# become claims.
ADMISSION = {"PriorityClass", "RuntimeClass", "ResourceClaimTemplate"}


def test_a_copy_of_a_cluster_has_every_kind_that_decides() -> None:
    (block,) = (block.code for block in blocks(REPLACE, "sh") if "cluster.json" in block.code)
    named = [
        plural
        for line in re.findall(r"^kinds=(.+)$", block, re.MULTILINE)
        for plural in line.removeprefix("$kinds,").split(",")
    ]
    assert len(named) == len(set(named))
    kinds = {resource.plural: resource.kind for resource in default_resources()}
    # Most clusters do not serve these, and kubectl would then get nothing at all.
    rare = {cls.__name__ for cls in GROUP_KINDS} | {"DeviceTaintRule"}
    decide = {cls.__name__ for cls in ClusterObjects().types()} - rare
    assert {kinds[plural] for plural in named} == decide | ADMISSION


# --- links ---

_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


def anchors(path: Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in kept} | set(
        re.findall(r'<a id="(.+?)">', text)
    )


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_somewhere(name: str) -> None:
    page = ROOT / name
    broken: list[str] = []
    for link in _LINK.finditer(re.sub(r"`[^`\n]*`", "", PAGES[name])):
        file, _, anchor = link["target"].partition("#")
        if "://" in file:
            continue
        target = (page.parent / file).resolve() if file else page
        is_found = target.exists() and (not anchor or anchor in anchors(target))
        broken += [] if is_found else [link["target"]]
    assert broken == []
