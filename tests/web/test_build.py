"""The files that the server sends are those that the sources in `web` give.

The fast tests need neither Node.js nor packages; the slow one builds the page again where they are.
"""

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "web"
ASSETS = ROOT / "src" / "kubestow" / "web" / "assets"
REPORT = ROOT / "src" / "kubestow" / "simulator" / "rebalance"
LOCK = json.loads((SOURCES / "package-lock.json").read_text(encoding="utf-8"))
PACKAGES = {name: entry for name, entry in LOCK["packages"].items() if name}


def source_files() -> list[Path]:
    paths = (path for path in SOURCES.rglob("*") if path.is_file())
    return [path for path in paths if "node_modules" not in path.relative_to(SOURCES).parts]


def hash_of_sources() -> str:
    """As web/build.mjs computes it."""
    whole = hashlib.sha256()
    files = {path.relative_to(SOURCES).as_posix(): path for path in source_files()}
    for name, path in sorted(files.items()):
        whole.update(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n".encode())
    return whole.hexdigest()


def test_the_committed_files_are_built_from_the_committed_sources() -> None:
    built = json.loads((ASSETS / "sources.json").read_text(encoding="utf-8"))
    assert built == {"sha256": hash_of_sources()}, "run `make page` and commit what it writes"


def test_every_package_has_an_exact_version_and_a_hash_and_no_registry() -> None:
    own = json.loads((SOURCES / "package.json").read_text(encoding="utf-8"))
    wanted = {**own["dependencies"], **own["devDependencies"]}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())
    assert all(entry["integrity"].startswith("sha512-") for entry in PACKAGES.values())
    assert not [name for name, entry in PACKAGES.items() if "resolved" in entry]


def test_the_licence_of_every_bundled_package_is_beside_the_files() -> None:
    licences = (ASSETS / "LICENSES.txt").read_text(encoding="utf-8")
    bundled = [name for name, entry in PACKAGES.items() if not entry.get("dev")]
    assert bundled
    for name in bundled:
        short = name.removeprefix("node_modules/")
        assert f"\n{short} {PACKAGES[name]['version']} (MIT)\n" in licences


@pytest.mark.parametrize("word", ["innerHTML", "outerHTML", "insertAdjacentHTML", "eval("])
def test_no_source_writes_markup_from_text(word: str) -> None:
    scripts = [path for path in source_files() if path.suffix in (".ts", ".tsx")]
    assert scripts
    assert not [path.name for path in scripts if word in path.read_text(encoding="utf-8")]


def test_the_document_has_no_inline_script_and_no_inline_style() -> None:
    text = (ASSETS / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script\b[^>]*>", text) == ['<script type="module" src="app.js">']
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=", text)


@pytest.mark.slow
def test_building_again_gives_the_same_bytes(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not (SOURCES / "node_modules" / "esbuild").is_dir():
        pytest.skip("the packages that build the page are not installed: run `make page`")
    page, report = tmp_path / "page", tmp_path / "report"
    command = [node, "build.mjs", str(page), str(report)]
    built = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    committed = {path.name: path.read_bytes() for path in ASSETS.iterdir()}
    assert {path.name: path.read_bytes() for path in page.iterdir()} == committed
    assert sorted(path.name for path in report.iterdir()) == ["plan.css", "plan.js"]
    for path in report.iterdir():
        assert path.read_bytes() == (REPORT / path.name).read_bytes()
