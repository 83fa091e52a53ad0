"""Files are read and unpacked up to a limit."""

import gzip
import io
import os
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from kubestow.errors import InputError
from kubestow.files import reading
from kubestow.files.reading import (
    DamagedError,
    InputTooLargeError,
    Unpacker,
    files_below,
    limit_input,
    open_text,
    read_file,
    read_stream,
    unpack,
    unpacked,
)


@pytest.fixture(autouse=True)
def _no_limit_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # Set first, so that what `limit_input` sets is undone.
    monkeypatch.setenv(reading.VARIABLE, "")


def bomb(mib: int) -> bytes:
    stream = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(stream.compress(b"#" * (1 << 20)) for _ in range(mib)) + stream.flush()


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 3_000_000)
    assert len(read_file(path)) == 3_000_000
    assert read_stream(io.BytesIO(b"ab" * 2_000_000), "in") == b"ab" * 2_000_000


def test_a_file_beyond_the_limit_names_it_and_the_flag(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_bytes(b"x" * 2049)
    limit_input("2Ki")
    with pytest.raises(InputTooLargeError, match=r"large\.yaml has 2\.001 KiB, .*2 KiB.*--max-inp"):
        read_file(path)
    with pytest.raises(InputTooLargeError, match="large"):
        open_text(path)
    with pytest.raises(InputTooLargeError, match=r"standard input has more than .* 2 KiB"):
        read_stream(io.BytesIO(b"x" * 2049), "standard input")
    path.write_bytes(b"x" * 2048)
    assert len(read_file(path)) == 2048


def test_a_device_without_end_is_read_to_the_limit() -> None:
    limit_input("3Mi")
    with pytest.raises(InputTooLargeError, match="/dev/zero has more than the limit of 3 MiB"):
        read_file("/dev/zero")
    with pytest.raises(InputTooLargeError, match="/dev/zero"):
        open_text("/dev/zero")


def test_lines_are_read_as_text(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("\ufeffä,b\n".encode())
    with open_text(path) as file:
        assert file.read() == "ä,b\n"


@pytest.mark.parametrize("pieces", [1, 2, 3000])
def test_streams_of_gzip_are_one_text(pieces: int) -> None:
    packed = b"".join(gzip.compress(b"piece") for _ in range(pieces))
    assert unpacked(packed, "a.gz") == b"piece" * pieces
    assert unpacked(packed + b"\0" * 9, "a.gz") == b"piece" * pieces
    assert unpacked(b"plain", "a") == b"plain"


def test_a_small_file_does_not_unpack_to_much() -> None:
    packed = bomb(32)
    assert len(packed) < 50_000
    tracemalloc.start()
    with pytest.raises(InputTooLargeError) as refused:
        unpacked(packed, "bomb.yaml.gz")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * reading.FREE_BYTES
    text = str(refused.value)
    assert text.startswith("bomb.yaml.gz has 3")
    assert "unpacks to more than the limit of 16 MiB" in text
    assert "--max-input" in text


def test_many_small_streams_are_limited_together() -> None:
    with pytest.raises(InputTooLargeError):
        unpack(gzip.compress(b"x" * 600) * 2, "a", 1000)
    assert len(unpack(gzip.compress(b"x" * 500) * 2, "a", 1000)) == 1000


def test_what_is_asked_for_unpacks_at_any_ratio() -> None:
    packed = bomb(20)
    limit_input("20Mi")
    assert len(unpacked(packed, "bomb")) == 20 << 20
    limit_input("19Mi")
    with pytest.raises(InputTooLargeError):
        unpacked(packed, "bomb")


def test_a_large_file_may_unpack_to_more_than_a_small_one() -> None:
    allowed = reading.unpacked_bytes_max
    assert allowed(1) == reading.FREE_BYTES
    assert allowed(1 << 20) == reading.RATIO << 20
    assert allowed(1 << 30) == reading.INPUT_BYTES


def test_pieces_of_a_file_are_limited_together() -> None:
    piece = zlib.compress(bytes(10 << 20))
    unpacker = Unpacker("run.rec")
    unpacker.unpack(piece, read_bytes=len(piece))
    with pytest.raises(InputTooLargeError, match=r"run\.rec"):
        unpacker.unpack(piece, read_bytes=2 * len(piece))


@pytest.mark.parametrize(
    "packed",
    [
        pytest.param(gzip.compress(b"text" * 100)[:-3], id="cut-off"),
        pytest.param(gzip.compress(b"text")[:-8] + bytes(8), id="checksum"),
        pytest.param(gzip.compress(b"text") + b"more", id="rest"),
        pytest.param(b"\x1f\x8b", id="no-header"),
    ],
)
def test_damaged_files(packed: bytes) -> None:
    with pytest.raises(DamagedError):
        unpacked(packed, "a.gz")


@pytest.mark.parametrize(
    ("size", "count"),
    [("512", 512), ("1k", 1000), ("2Mi", 2 << 20), ("1.5Gi", 3 << 29), ("4GiB", 4 << 30)],
)
def test_sizes(size: str, count: int) -> None:
    limit_input(size)
    assert reading.input_bytes_max() == count
    assert os.environ[reading.VARIABLE] == str(count)  # for processes that are started


@pytest.mark.parametrize("size", ["0", "-1", "lots", "1e9", "4 Gi x", "9" * 30])
def test_no_sizes(size: str) -> None:
    with pytest.raises(InputError, match="--max-input is"):
        limit_input(size)


def test_files_are_limited_together() -> None:
    limit_input("10")
    total = reading.TotalSize()
    assert total.counted(b"12345") == b"12345"
    assert total.counted(b"12345") == b"12345"
    with pytest.raises(InputTooLargeError, match="the files have more than the limit of 10 bytes"):
        total.counted(b"1")


def test_a_folder_below_that_cannot_be_read_is_an_error_not_an_empty_one(
    tmp_path: Path, closed: Callable[[Path], None]
) -> None:
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "skipped").mkdir()
    for name in ("a", "b/d", "b/c/e", "skipped/f"):
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to(tmp_path / "b")

    def found() -> list[str]:
        return [
            str(path.relative_to(tmp_path)) for path in files_below(tmp_path, skipped=("skipped",))
        ]

    assert found() == ["a", "b/d", "b/c/e"]
    closed(tmp_path / "b" / "c")
    with pytest.raises(InputError, match=r'^cannot read ".*/b/c": Permission denied$'):
        found()
    noted: list[OSError] = []
    left = list(files_below(tmp_path / "b", unreadable=noted.append))
    assert left == [tmp_path / "b" / "d"]
    assert [error.filename for error in noted] == [str(tmp_path / "b" / "c")]
