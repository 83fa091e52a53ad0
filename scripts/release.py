"""Builds all that is published of one version into `dist`: `make release`.

    kubestow-VERSION-py3-none-any.whl, kubestow-VERSION.tar.gz    the package
    kubestow-VERSION-image.tar.gz                                 what an image is built from
    kubestow-VERSION.tgz                                          the chart
    sbom.cdx.json                                                 what package and image contain
    SHA256SUMS

Everything comes from the commit, not from the folder, and has the time of the commit (or
SOURCE_DATE_EPOCH): two runs give the same bytes. Nothing is uploaded.
"""

import argparse
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sbom import bill_of_materials

ROOT: Final = Path(__file__).parents[1]
NAME: Final = "kubestow"
_SECTION: Final = re.compile(
    r"^## \[(?P<version>\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$\n(?P<text>.*?)(?=^## |\Z)",
    re.DOTALL | re.MULTILINE,
)
# Where a version is written, and how.
_WRITTEN: Final = {
    "src/kubestow/__init__.py": r'^__version__ = "(.+)"$',
    "deploy/chart/Chart.yaml": r"^(?:appVersion|version): (.+)$",
    "deploy/base/kustomization.yaml": r"^ +newTag: (.+)$",
    "Containerfile": r"^ARG VERSION=(.+)$",
}
_TAG: Final = re.compile(r"\bkubestow[:-](\d+\.\d+\.\d+)\b")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


class ReleaseError(Exception):
    """This cannot be released; the text says what to do."""


def release(output: Path, *, version: str | None, base_digest: str | None) -> list[Path]:
    """Build everything; the files that were written."""
    version = changelog_version((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    wrong = {place: found for place, found in versions(ROOT) if found != version}
    if wrong:
        places = ", ".join(f"{place} has {found}" for place, found in wrong.items())
        raise ReleaseError(f"the version is {version}, but {places}")
    if base_digest is not None and not _DIGEST.fullmatch(base_digest):
        raise ReleaseError(f'the digest is "{base_digest}", expected sha256: and 64 digits')
    if changes := _git("status", "--porcelain").rstrip():
        raise ReleaseError(f"the folder differs from the commit:\n{changes}")
    time_s = int(os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct"))
    with tempfile.TemporaryDirectory(prefix="kubestow-release-") as folder:
        source, built = Path(folder, "source"), Path(folder, "built")
        _export(source)
        _build_package(source, built, time_s)
        chart = source / "deploy" / "chart"
        _write_archive(built / f"{NAME}-{version}.tgz", NAME, _files_of(chart), time_s)
        context = _image_context(source, version, base_digest, time_s)
        image = f"{NAME}-{version}-image"
        _write_archive(built / f"{image}.tar.gz", image, context, time_s)
        _write_bill(built, source, version, context, time_s)
        _write_sums(built)
        output.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copy(path, output)) for path in sorted(built.iterdir())]


# --- versions ---


def changelog_version(text: str, wanted: str | None) -> str:
    """The wanted version, or the newest one, if the changelog has a section with text for it."""
    sections = {found["version"]: found["text"] for found in _SECTION.finditer(text)}
    if wanted is None and not sections:
        raise ReleaseError(
            'CHANGELOG.md has no section of a version, like "## [1.2.3] - 2026-01-31"'
        )
    version = next(iter(sections)) if wanted is None else wanted
    if not sections.get(version, "").strip():
        raise ReleaseError(
            f'CHANGELOG.md has no section "## [{version}] - YYYY-MM-DD" with text: move what is '
            "under Unreleased there"
        )
    return version


def versions(root: Path) -> Iterator[tuple[str, str]]:
    """Every place that names the version of this project, and the version it has."""
    for name, pattern in _WRITTEN.items():
        found = re.findall(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        yield from ((name, version) for version in found or ["none"])
    pages = [*(root / "docs" / "guides").glob("*.md"), root / "Containerfile"]
    for path in sorted([*pages, *(root / "deploy").rglob("*.yaml")]):
        for version in _TAG.findall(path.read_text(encoding="utf-8")):
            yield str(path.relative_to(root)), version


# --- parts ---


def _export(folder: Path) -> None:
    """The files of the commit."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="tar")


def _build_package(source: Path, built: Path, time_s: int) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--directory", str(built)],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(time_s)},
        check=True,
        capture_output=True,
    )


def _image_context(
    source: Path, version: str, base_digest: str | None, time_s: int
) -> dict[str, bytes]:
    """What .containerignore lets through, and the Containerfile with its arguments filled in."""
    kept = (source / ".containerignore").read_text(encoding="utf-8").splitlines()
    context: dict[str, bytes] = {}
    for name in (line.removeprefix("!") for line in kept if line.startswith("!")):
        path = source / name
        inside = _files_of(path) if path.is_dir() else {"": path.read_bytes()}
        context |= {f"{name}/{rest}".rstrip("/"): data for rest, data in inside.items()}
    values = {
        "VERSION": version,
        "REVISION": _git("rev-parse", "HEAD").strip(),
        "CREATED": _time_text(time_s),
    }
    text = (source / "Containerfile").read_text(encoding="utf-8")
    for name, value in values.items():
        text = re.sub(rf"^ARG {name}=.*$", f"ARG {name}={value}", text, flags=re.MULTILINE)
    if base_digest is not None:
        text = re.sub(r"^(ARG BASE=.+)$", rf"\1@{base_digest}", text, flags=re.MULTILINE)
    return {**context, "Containerfile": text.encode()}


def _files_of(folder: Path) -> dict[str, bytes]:
    """The files below a folder by their names in it; links are followed."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def _write_archive(path: Path, folder: str, files: Mapping[str, bytes], time_s: int) -> None:
    """A gzipped tar archive that has these files in one folder and depends on nothing else."""
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=time_s) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in sorted(files):
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(files[name]), time_s, 0o644
            archive.addfile(entry, io.BytesIO(files[name]))


def _write_bill(
    folder: Path, source: Path, version: str, context: Mapping[str, bytes], time_s: int
) -> None:
    bill = bill_of_materials(
        version=version,
        created=_time_text(time_s),
        lock=(source / "requirements" / "runtime.txt").read_text(encoding="utf-8"),
        page_lock=(source / "web" / "package-lock.json").read_text(encoding="utf-8"),
        containerfile=context["Containerfile"].decode(),
        files={path.name: _digest(path) for path in folder.iterdir()},
    )
    (folder / "sbom.cdx.json").write_bytes(bill)


def _time_text(time_s: int) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _write_sums(folder: Path) -> None:
    lines = [f"{_digest(path)}  {path.name}\n" for path in sorted(folder.iterdir())]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description="Build all that is published of one version.")
    parser.add_argument("--version", help="default: the newest of CHANGELOG.md")
    parser.add_argument("--base-digest", help="sha256:... of the base image, for its pinned name")
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    given = parser.parse_args()
    try:
        files = release(given.output, version=given.version, base_digest=given.base_digest)
    except ReleaseError as error:
        sys.exit(f"cannot release: {error}")
    for path in files:
        print(path)
    if given.base_digest is None:
        print("the base image is named by its tag, which may change: give BASE_DIGEST=sha256:...")


if __name__ == "__main__":
    main()
