"""The file of a recording: whole, cut off, damaged."""

import logging
import struct
import zlib
from pathlib import Path

import msgspec
import pytest

from kubestow.errors import InputError
from kubestow.recording import file
from kubestow.recording.file import MAGIC, RecordingReader, RecordingWriter
from kubestow.recording.format import Header, Put, Record, RecordedAttempt
from kubestow.recording.recording import RecordTo

HEADER = Header(program="1.0", origin="run", started_ns=5, config="", gates={}, chance="{}")


def record(number: int) -> Put:
    return Put(number, "Pod", b"x" * 100)


def written(path: Path, blocks: int) -> list[Record]:
    writer = RecordingWriter(path, HEADER)
    records: list[Record] = []
    for number in range(blocks):
        records.append(record(number))
        writer.records.append(records[-1])
        writer.flush()
    writer.close()
    return records


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "r"
    attempt = RecordedAttempt(1, "ns/p", "u", "", "0/1 nodes", None, ("ns/v",), 1, 0, 7)
    writer = RecordingWriter(path, HEADER)
    writer.records.append(record(0))
    writer.records.append(attempt)
    writer.close()
    reader = RecordingReader(path)
    assert reader.header == HEADER
    assert list(reader) == [record(0), attempt]
    assert reader.cut_at is None
    assert reader.share_read == 1


def test_many_records_are_written_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "BLOCK_BYTES", 1000)
    path = tmp_path / "r"
    writer = RecordingWriter(path, HEADER)
    for number in range(100):
        writer.records.append(record(number))
    writer.close()
    assert list(RecordingReader(path)) == [record(number) for number in range(100)]


def framed(*contents: bytes) -> bytes:
    blocks = [MAGIC]
    for content in contents:
        packed = zlib.compress(content)
        blocks += (struct.pack("<II", len(packed), zlib.crc32(packed)), packed)
    return b"".join(blocks)


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(b'{"a":' + b"[" * 100_000, id="deep"),
        pytest.param(b'{"program":"\xff"}', id="no-utf8"),
        pytest.param(b"{}", id="empty"),
        pytest.param(msgspec.json.encode(HEADER).replace(b"5", b"-5"), id="time"),
    ],
)
def test_a_damaged_header_is_named_in_one_line(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "r"
    path.write_bytes(framed(header))
    with pytest.raises(InputError, match=r"^\S+/r is damaged: the block at byte 19: .+$"):
        RecordingReader(path)


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(b"\x91" * 100_000, id="deep"),
        pytest.param(b"\x91\x94\xa1+\x00\xa1\xff\xc4\x00", id="no-utf8"),
        pytest.param(msgspec.msgpack.encode([["&", 0, 10**9]]), id="turns"),
        pytest.param(msgspec.msgpack.encode([["&", 2**63, 1]]), id="time"),
        pytest.param(b"\x90" + bytes(9 << 20), id="many-records"),
    ],
)
def test_damaged_records_are_named_in_one_line(tmp_path: Path, records: bytes) -> None:
    path = tmp_path / "r"
    path.write_bytes(framed(msgspec.json.encode(HEADER), records))
    with pytest.raises(InputError, match=r"^\S+/r is damaged: the block at byte \d+: .+$"):
        list(RecordingReader(path))


def test_a_small_recording_does_not_unpack_to_much(tmp_path: Path) -> None:
    path = tmp_path / "r"
    header = msgspec.json.encode(HEADER)
    path.write_bytes(framed(header, bytes(17 << 20)))
    with pytest.raises(InputError, match="unpacks to more than the limit"):
        list(RecordingReader(path))
    # Nor do many blocks together.
    records = msgspec.msgpack.encode([Put(0, "Pod", bytes(7 << 20))])
    path.write_bytes(framed(header, *[records] * 5))
    with pytest.raises(InputError, match="unpacks to more than the limit"):
        list(RecordingReader(path))


def test_another_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_text("mine")
    with pytest.raises(InputError, match="exists and is not overwritten"):
        RecordingWriter(path, HEADER)
    assert path.read_text() == "mine"
    RecordingWriter(path, HEADER, force=True).close()
    assert RecordingReader(path).header == HEADER
    assert path.stat().st_mode & 0o777 == 0o600


def test_both_files_of_a_recording_have_to_be_free(tmp_path: Path) -> None:
    (tmp_path / "r.1").write_text("mine")
    RecordTo(tmp_path / "r", "run").check()
    with pytest.raises(InputError, match=r"r\.1.* exists"):
        RecordTo(tmp_path / "r", "run", 5).check()
    RecordTo(tmp_path / "r", "run", 5, force=True).check()


def test_a_recording_that_is_cut_off_is_read_up_to_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "r"
    records = written(path, 4)
    whole = path.read_bytes()
    ends = [len(MAGIC)]
    for length in range(len(MAGIC) + 1, len(whole)):
        path.write_bytes(whole[:length])
        try:
            reader = RecordingReader(path)
        except InputError:
            assert len(ends) == 1  # Not even the header is whole.
            continue
        read = list(reader)
        assert read == records[: len(read)]
        if reader.cut_at is None:
            ends.append(length)
        else:
            assert reader.cut_at == ends[-1]
    assert len(ends) == 1 + 4  # the header, and all blocks but the last


def test_a_damaged_recording_is_refused_with_the_place(tmp_path: Path) -> None:
    path = tmp_path / "r"
    written(path, 3)
    whole = bytearray(path.read_bytes())
    whole[-1] ^= 1
    path.write_bytes(whole)
    reader = RecordingReader(path)
    with pytest.raises(InputError, match=r"r is damaged: the block at byte \d+: its checksum is"):
        list(reader)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is no recording: make one with `kubestow run --record`"),
        (b"PK\x03\x04 something else", "is no recording"),
        (MAGIC, "ends before its first block: nothing was recorded"),
        (MAGIC + b"\xff" * 8, "is damaged: the block at byte 19: its length is not possible"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "r"
    path.write_bytes(content)
    with pytest.raises(InputError, match=text):
        RecordingReader(path)


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r"
    header = Header(
        format=99, program="9.9", origin="run", started_ns=0, config="", gates={}, chance=""
    )
    RecordingWriter(path, header).close()
    with pytest.raises(InputError, match=r"made by kubestow 9\.9.*use a newer version"):
        RecordingReader(path)


def test_paths_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot write the recording .*: no such file"):
        RecordingWriter(tmp_path / "no" / "r", HEADER)
    with pytest.raises(InputError, match=r"cannot read the recording .*: no such file"):
        RecordingReader(tmp_path / "r")


def test_a_disk_that_fails_ends_the_recording_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = RecordingWriter(tmp_path / "r", HEADER)

    def full(_: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer, "_write_block", full)
    with caplog.at_level(logging.ERROR):
        writer.records.append(record(0))
        writer.close()
    assert "The recording has ended" in caplog.text
    assert "No space left on device" in caplog.text
    writer.records.append(record(1))
    assert writer.is_ended


def test_a_slow_disk_ends_the_recording_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "WAITING_BLOCKS_MAX", 0)
    writer = RecordingWriter(tmp_path / "r", HEADER)
    writer.records.append(record(0))
    writer.flush()
    assert "is written too slowly" in caplog.text
    writer.close()
    assert list(RecordingReader(tmp_path / "r")) == []


def test_what_comes_after_the_end_is_left_out(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r", HEADER)
    writer.records.append(record(0))
    writer.close()
    writer.records.append(record(1))
    writer.flush()
    writer.close()
    assert list(RecordingReader(tmp_path / "r")) == [record(0)]
