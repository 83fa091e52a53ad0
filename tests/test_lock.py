"""The lock pins everything by hash and names no registry, address or path."""

import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOCKS = ["runtime", "dev", "build", "installer"]
PIN = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[^ ;]+)(?: ; (?P<marker>.+?))? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}(?: \\)?")
COMMENT = re.compile(r" *#.*")


def lock_lines(lock: str) -> list[str]:
    return (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8").splitlines()


def pins(lock: str) -> dict[str, str]:
    found = (PIN.fullmatch(line) for line in lock_lines(lock))
    return {pin["name"]: pin["version"] for pin in found if pin}


def normalised(requirement: str) -> str:
    """The name at the start of a requirement, as locks spell it."""
    name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_is_a_pin_a_hash_or_a_comment(lock: str) -> None:
    # Index and find-links options, and packages given by address, are none of these.
    shapes = (PIN, HASH, COMMENT)
    odd = [line for line in lock_lines(lock) if not any(s.fullmatch(line) for s in shapes)]
    assert not odd


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_a_hash(lock: str) -> None:
    lines = [line for line in lock_lines(lock) if not COMMENT.fullmatch(line)]
    followers = [after for line, after in pairwise(lines) if PIN.match(line)]
    assert followers
    assert all(HASH.fullmatch(line) for line in followers)
    assert not PIN.match(lines[-1])


@pytest.mark.parametrize("lock", LOCKS)
def test_no_address_or_path_is_named(lock: str) -> None:
    telling = re.compile(r"://|(^|\s)/|find-links|index-url")
    assert not [line for line in lock_lines(lock) if telling.search(line)]


def test_development_uses_the_versions_people_run() -> None:
    assert pins("runtime").items() <= pins("dev").items()


def test_everything_is_installed_with_the_version_of_development() -> None:
    assert pins("installer").items() <= pins("dev").items()


def test_releases_are_built_with_the_versions_of_development() -> None:
    assert pins("build").items() <= pins("dev").items()


def test_what_pyproject_asks_for_is_pinned() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    runtime = [*project["dependencies"], *project["optional-dependencies"]["uvloop"]]
    groups = settings["dependency-groups"]
    tools = [need for group in groups.values() for need in group if isinstance(need, str)]
    build = settings["build-system"]["requires"]
    assert {normalised(need) for need in runtime} <= pins("runtime").keys()
    assert {normalised(need) for need in (*tools, *build)} <= pins("dev").keys()
    assert {normalised(need) for need in build} <= pins("build").keys()


def test_the_http_server_is_one_that_limits_what_it_keeps() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (wanted,) = (need for need in settings["project"]["dependencies"] if "aiohttp" in need)
    assert wanted == "aiohttp>=3.14.1"
    assert tuple(map(int, pins("runtime")["aiohttp"].split("."))) >= (3, 14, 1)
