"""A copy of the repository that may be changed: what git lists, in a folder that goes away."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def copied_tree(root: Path) -> Generator[Path]:
    """Files that git has or could add, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
    ).stdout
    with tempfile.TemporaryDirectory(prefix="kubestow-mutation-") as folder:
        for name in filter(None, listed.decode().split("\0")):
            source, target = root / name, Path(folder, name)
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        yield Path(folder)


def searched(copy: Path) -> str:
    """The search path of a process that imports the package from the copy, and this tool."""
    own = str(copy / "src"), str(Path(__file__).parents[2])
    return os.pathsep.join(filter(None, (*own, os.environ.get("PYTHONPATH"))))
