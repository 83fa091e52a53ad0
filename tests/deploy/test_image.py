"""The image definition: only pinned packages, only files it needs, and the command on the path."""

import re
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINES = [
    line
    for line in (ROOT / "Containerfile").read_text().replace("\\\n", " ").splitlines()
    if line and not line.startswith("#")
]


def instructions(name: str) -> list[str]:
    return [line.removeprefix(f"{name} ") for line in LINES if line.startswith(f"{name} ")]


def copied() -> list[str]:
    """What is copied from the repository."""
    words = [line.split() for line in instructions("COPY") if "--from" not in line]
    return [source for *sources, _ in words for source in sources]


def test_every_package_is_pinned_by_its_hash_or_built_here() -> None:
    installs = [
        part for line in instructions("RUN") for part in line.split("&&") if "/pip " in part
    ]
    assert len(installs) == 4
    for install in installs:
        assert "--require-hashes -r requirements/" in install or "--no-index" in install, install
    (build,) = (install for install in installs if "pip wheel" in install)
    assert "--no-build-isolation" in build


def test_everything_copied_exists_and_reaches_the_build() -> None:
    rules = (ROOT / ".containerignore").read_text().splitlines()
    assert rules[1] == "*"
    kept = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    assert set(copied()) == kept
    for name in kept:
        assert (ROOT / name).exists()
        assert not any(fnmatch(name, rule) for rule in rules[2:] if rule[0] not in "!#")


def test_what_the_build_of_the_package_reads_is_copied() -> None:
    settings = (ROOT / "pyproject.toml").read_text()
    named = re.findall(r'^(?:readme|license-files) = (?:\[)?"([^"]+)"', settings, re.MULTILINE)
    assert named == ["README.md", "LICENSE"]
    assert {*named, "pyproject.toml", "src"} <= set(copied())


def test_the_command_is_on_the_path_of_a_user_without_rights() -> None:
    (copy,) = (line for line in instructions("COPY") if "--from" in line)
    folder = copy.split()[-1]
    assert instructions("ENV") == [f"PATH={folder}/bin:${{PATH}}"]
    assert instructions("ENTRYPOINT") == ['["kubestow"]']
    assert instructions("USER") == ["65532:65532"]


def test_both_stages_have_the_base_that_a_release_pins() -> None:
    assert instructions("FROM") == ["${BASE} AS build", "${BASE}"]
    assert instructions("ARG")[0].startswith("BASE=")


def test_labels_say_what_is_in_the_image() -> None:
    (labels,) = instructions("LABEL")
    for name in ("title", "description", "licenses", "version", "revision", "created"):
        assert f"org.opencontainers.image.{name}=" in labels
