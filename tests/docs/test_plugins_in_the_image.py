"""The guide on plugins in the image: its lines put the module where the scheduler finds it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "scripts"))

from pages import blocks  # noqa: E402  (found through the line above)

TEXT = (ROOT / "docs" / "guides" / "plugins-in-the-image.md").read_text(encoding="utf-8")
SAVED = {block.options["save"]: block.code for block in blocks(TEXT) if "save" in block.options}
LOAD = (
    "import sys\n"
    "from kubestow.plugins.loading import load_plugins\n"
    "from kubestow.service.options import parse_options\n"
    "print('Reserved' in load_plugins(parse_options(sys.argv[1:]).config).registry)\n"
)


@pytest.mark.slow  # a process
def test_the_scheduler_of_the_image_finds_the_module(tmp_path: Path) -> None:
    base, copy, path = SAVED["Containerfile"].splitlines()
    assert base.startswith("FROM kubestow:")
    _, source, target = copy.split()
    assert path == f"ENV PYTHONPATH={target.rstrip('/')}"
    folder = tmp_path / target.strip("/")
    folder.mkdir(parents=True)
    (folder / source).write_text(SAVED[source])
    (tmp_path / "config.yaml").write_text(SAVED["config.yaml"])
    done = subprocess.run(
        [sys.executable, "-c", LOAD, "--config=config.yaml"],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{folder}:{':'.join(filter(None, sys.path))}"},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "True\n", done.stderr


def test_a_package_goes_into_the_environment_of_the_scheduler() -> None:
    """`pip` is that of the folder that the image has first on its path."""
    _, package = (block.code for block in blocks(TEXT, "dockerfile"))
    image = (ROOT / "Containerfile").read_text()
    assert "ENV PATH=/opt/kubestow/bin:" in image
    assert "`/opt/kubestow`" in TEXT
    lines = package.splitlines()
    assert lines[1] == "USER 0"
    assert lines[-1] in image.splitlines()  # the user of the image again
