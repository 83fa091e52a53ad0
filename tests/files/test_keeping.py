"""Files for keeping are private, and replace no other."""

import os
from pathlib import Path

import pytest

from kubestow.errors import InputError
from kubestow.files import keeping


def mode(path: Path) -> int:
    return path.lstat().st_mode & 0o777


def test_only_the_owner_can_read_them(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        keeping.write(tmp_path / "a", "text")
        keeping.write(tmp_path / "b", b"bytes")
        keeping.replace(tmp_path / "c", b"bytes")
    finally:
        os.umask(old)
    assert [mode(path) for path in sorted(tmp_path.iterdir())] == [0o600] * 3


def test_another_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("mine")
    message = r'--report: ".*a" exists and is not overwritten; name another file, or add --force'
    with pytest.raises(InputError, match=message):
        keeping.require_new(path, "--report", force=False)
    with pytest.raises(FileExistsError):
        keeping.write(path, "other")
    assert path.read_text() == "mine"
    keeping.require_new(path, "--report", force=True)
    keeping.write(path, "other", force=True)
    assert path.read_text() == "other"
    assert mode(path) == 0o600


@pytest.mark.parametrize("exists", [True, False])
def test_nothing_is_written_through_a_link(tmp_path: Path, exists: bool) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    if exists:
        target.write_text("mine")
    link.symlink_to(target)
    with pytest.raises(InputError, match="is a link and is not overwritten"):
        keeping.require_new(link, "--record", force=False)
    with pytest.raises(FileExistsError):
        keeping.create(link)
    keeping.write(link, "other", force=True)
    assert not link.is_symlink()
    assert link.read_text() == "other"
    assert target.exists() == exists
    assert not exists or target.read_text() == "mine"


def test_a_replaced_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("mine")
    keeping.replace(path, b"other")
    assert path.read_text() == "other"
    with pytest.raises(OSError, match="No such file"):
        keeping.replace(tmp_path / "no" / "a", b"")
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


@pytest.mark.usefixtures("full_disk")
def test_what_does_not_fit_is_not_kept_in_part(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with pytest.raises(OSError, match="File too large"):
        keeping.write(path, b"x" * 3000)
    assert not path.exists()
    path.write_text("mine")
    for write in (
        lambda: keeping.write(path, "y" * 3000, force=True),
        lambda: keeping.replace(path, "z" * 3000),
    ):
        with pytest.raises(OSError, match="File too large"):
            write()
        assert path.read_text() == "mine"
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it is a folder"):
        keeping.require_new(tmp_path, "--save", force=True)
    with pytest.raises(InputError, match="there is no folder"):
        keeping.require_new(tmp_path / "no" / "a", "--save", force=True)


def test_devices_and_pipes_are_written_to(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/dev/null")
    for path in (Path("/dev/null"), link):
        keeping.require_new(path, "--record", force=False)
        keeping.write(path, "text", force=True)
        keeping.replace(path, "text")
    assert link.is_symlink()
