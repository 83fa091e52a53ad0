"""Which programs of a control plane there are, and how new they are."""

import sys
from pathlib import Path

import pytest

from tools.control_plane import PROGRAMS, missing_programs, server_minor


@pytest.mark.parametrize(
    ("printed", "minor"),
    [
        ("Kubernetes v1.34.2\n", 34),
        ("Kubernetes v1.36.0-alpha.2.45+0123abc", 36),
        ("Kubernetes v0.0.0-master+$Format:%H$", sys.maxsize),
    ],
)
def test_a_server_without_a_version_is_the_newest(printed: str, minor: int) -> None:
    assert server_minor(printed) == minor


def test_programs_that_a_folder_lacks_are_named(tmp_path: Path) -> None:
    assert missing_programs("") == [*PROGRAMS]
    for name in ("etcd", "kube-apiserver"):
        (tmp_path / name).touch(mode=0o755)
    (tmp_path / "kubectl").touch(mode=0o644)  # cannot be run
    assert missing_programs(str(tmp_path)) == ["kubectl"]
    (tmp_path / "kubectl").chmod(0o755)
    assert missing_programs(str(tmp_path)) == []
