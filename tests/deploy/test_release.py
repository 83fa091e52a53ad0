"""A release is built from the commit alone, twice the same, and only from a state that fits."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kubestow import __version__

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from release import ReleaseError, changelog_version, versions  # noqa: E402  (found above)

PARTS = ("src", "web", "deploy", "requirements", "scripts", "docs/guides")
FILES = (
    "pyproject.toml", "README.md", "LICENSE", "Containerfile", ".containerignore", ".gitignore",
)  # fmt: skip
CHANGELOG = f"""\
# Changelog

## [Unreleased]

## [{__version__}] - 2026-01-31

### Added

- Everything.
"""
DIGEST = f"sha256:{'0123456789abcdef' * 4}"
MADE = [
    "SHA256SUMS",
    f"kubestow-{__version__}-image.tar.gz",
    f"kubestow-{__version__}-py3-none-any.whl",
    f"kubestow-{__version__}.tar.gz",
    f"kubestow-{__version__}.tgz",
    "sbom.cdx.json",
]

# --- versions ---


def test_every_place_names_the_same_version() -> None:
    found = [*versions(ROOT)]
    assert {version for _, version in found} == {__version__}
    places = {place for place, _ in found}
    assert {"deploy/chart/Chart.yaml", "deploy/static-pod/kube-scheduler.yaml"} <= places


@pytest.mark.parametrize(
    ("wanted", "found"), [(None, "1.10.0"), ("1.10.0", "1.10.0"), ("1.9.0", "1.9.0")]
)
def test_the_version_is_that_of_the_changelog(wanted: str | None, found: str) -> None:
    text = "## [Unreleased]\n\n## [1.10.0] - 2026-02-01\n\n- b\n\n## [1.9.0] - 2026-01-01\n\n- a\n"
    assert changelog_version(text, wanted) == found


@pytest.mark.parametrize(
    ("text", "wanted", "why"),
    [
        pytest.param("## [Unreleased]\n\n- a\n", None, "no section of a version", id="none"),
        pytest.param("## [1.0.0] - 2026-01-01\n\n- a\n", "1.0.1", r"\[1\.0\.1\]", id="other"),
        pytest.param("## [1.0.0] - 2026-01-01\n\n## [0.9.0] - 2025-01-01\n", "1.0.0", "with text"),
        pytest.param("## [1.0.0]\n\n- a\n", "1.0.0", "YYYY-MM-DD", id="no-date"),
    ],
)
def test_a_version_needs_a_section_with_text(text: str, wanted: str | None, why: str) -> None:
    with pytest.raises(ReleaseError, match=why):
        changelog_version(text, wanted)


# --- a whole release ---


class Repository:
    """A copy of what a release is made of, as a repository of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for part in PARTS:
            ignored = shutil.ignore_patterns("__pycache__", "node_modules")
            shutil.copytree(ROOT / part, folder / part, symlinks=True, ignore=ignored)
        for name in FILES:
            shutil.copy(ROOT / name, folder)
        (folder / "CHANGELOG.md").write_text(CHANGELOG)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder.parent),
            "GIT_CONFIG_NOSYSTEM": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.git("init", "--quiet")
        self.commit()

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@example", *arguments],
            cwd=self.folder,
            env=self.environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=all")

    def release(self, *flags: str, umask: int = 0o022) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, str(self.folder / "scripts" / "release.py"), *flags],
            env=self.environment,
            umask=umask,
            capture_output=True,
            text=True,
        )


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    if shutil.which("git") is None:
        pytest.skip("no git")
    folder = tmp_path / "repository"
    folder.mkdir()
    return Repository(folder)


@pytest.mark.slow
def test_two_runs_give_the_same_files(repository: Repository, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    done = repository.release(f"--output={first}", f"--base-digest={DIGEST}")
    assert done.returncode == 0, done.stderr
    # Neither what git ignores nor rights of files reach a release.
    (repository.folder / "src" / "kubestow" / "left.pyc").write_bytes(b"over")
    done = repository.release(f"--output={second}", f"--base-digest={DIGEST}", umask=0o077)
    assert done.returncode == 0, done.stderr
    sums = (first / "SHA256SUMS").read_text()
    assert sums == (second / "SHA256SUMS").read_text()
    assert sorted(path.name for path in first.iterdir()) == MADE
    for line in sums.splitlines():
        expected, name = line.split("  ")
        assert hashlib.sha256((second / name).read_bytes()).hexdigest() == expected
    check_wheel(first / MADE[2])
    check_bill(first)
    check_image(first / MADE[1], tmp_path / "image", repository.git("rev-parse", "HEAD").strip())


def check_bill(folder: Path) -> None:
    """Every file of the release is in it, with its sum; the base image with its digest."""
    components = json.loads((folder / "sbom.cdx.json").read_text())["components"]
    sums = {one["name"]: one["hashes"][0]["content"] for one in components if "hashes" in one}
    assert sums.pop("docker.io/library/python") == DIGEST.removeprefix("sha256:")
    assert {*sums} == {*MADE} - {"sbom.cdx.json", "SHA256SUMS"}
    for name, expected in sums.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected


def check_wheel(path: Path) -> None:
    with zipfile.ZipFile(path) as wheel:
        assert {"kubestow/py.typed", "kubestow/service/cli.py"} <= set(wheel.namelist())
        assert "kubestow/left.pyc" not in wheel.namelist()
        assert {name.split("/")[0].partition("-")[0] for name in wheel.namelist()} == {"kubestow"}


def check_image(path: Path, folder: Path, revision: str) -> None:
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
    (context,) = folder.iterdir()
    text = (context / "Containerfile").read_text()
    assert f"\nARG BASE=docker.io/library/python:3.13-slim@{DIGEST}\n" in text
    assert f"\nARG VERSION={__version__}\nARG REVISION={revision}\nARG CREATED=20" in text
    for name in ("pyproject.toml", "requirements/build.txt", "src/kubestow/__init__.py"):
        assert (context / name).read_bytes() == (ROOT / name).read_bytes()


@pytest.mark.slow
def test_the_packed_chart_is_the_chart(
    repository: Repository, tmp_path: Path, helm_path: Path, helm: Any
) -> None:
    done = repository.release(f"--output={tmp_path / 'out'}", f"--version={__version__}")
    assert done.returncode == 0, done.stderr
    assert "the base image is named by its tag" in done.stdout
    packed = type(helm)(helm_path, tmp_path, tmp_path / "out" / f"kubestow-{__version__}.tgz")
    flags = ("--set=monitoring.enabled=true", "--set=tls.certManager=true")
    assert packed.template(*flags) == helm.template(*flags)
    assert packed.run("lint", str(packed.chart)).returncode == 0


def test_make_hands_over_what_it_is_given() -> None:
    command = ["make", "--dry-run", "release", "VERSION=1.2.3", f"BASE_DIGEST={DIGEST}"]
    shown = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert f"scripts/release.py --version 1.2.3 --base-digest {DIGEST}\n" in shown


def test_a_release_is_refused_with_the_reason(repository: Repository, tmp_path: Path) -> None:
    def refusal(*flags: str) -> str:
        done = repository.release(f"--output={tmp_path / 'out'}", *flags)
        assert done.returncode == 1
        assert not (tmp_path / "out").exists()
        return done.stderr

    assert 'no section "## [9.9.9]' in refusal("--version=9.9.9")
    assert "expected sha256:" in refusal("--base-digest=latest")
    chart = repository.folder / "deploy" / "chart" / "Chart.yaml"
    chart.write_text(chart.read_text().replace(f"appVersion: {__version__}", "appVersion: 9.9.9"))
    assert "deploy/chart/Chart.yaml has 9.9.9" in refusal()
    repository.git("checkout", "--quiet", ".")
    (repository.folder / "left.txt").write_text("over")
    assert "differs from the commit:\n?? left.txt" in refusal()
