"""The programs of a control plane that tests run: which there are, and how new they are."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

# kubectl builds what is in `deploy`.
PROGRAMS: Final = ("etcd", "kube-apiserver", "kubectl")


def missing_programs(folder: str, programs: Sequence[str] = PROGRAMS) -> list[str]:
    """The programs that the folder lacks; all if no folder is named."""
    return [name for name in programs if not folder or not shutil.which(Path(folder, name))]


def server_minor(printed: str) -> int:
    """34 of "Kubernetes v1.34.2". A server built without a version, v0.0.0, is newer than all."""
    major, minor, *_ = printed.split()[-1].removeprefix("v").split(".")
    return int(minor) if int(major) else sys.maxsize
