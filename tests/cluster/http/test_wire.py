"""HTTP answers read piece by piece."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.cluster.http.wire import HEAD_BYTES_MAX, Head, ResponseParser, WireError

LENGTH = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n6;name=x\r\n\r\nwide\r\n0\r\nTrailer: x\r\n\r\n"
)
EMPTY_CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
NO_BODY = b"HTTP/1.1 204 No Content\r\n\r\n"
ANNOUNCED = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + LENGTH
NO_REASON = b"HTTP/1.1 404\r\ncontent-length:0\r\n\r\n"


def read(pieces: list[bytes]) -> ResponseParser:
    parser = ResponseParser()
    for piece in pieces:
        parser.feed(piece)
    return parser


@pytest.mark.parametrize(
    ("raw", "status", "body"),
    [
        pytest.param(LENGTH, 201, b"hello", id="length"),
        pytest.param(CHUNKED, 200, b"hello\r\nwide", id="chunks-extension-trailer"),
        pytest.param(EMPTY_CHUNKS, 200, b"", id="no-chunks"),
        pytest.param(NO_BODY, 204, b"", id="no-body"),
        pytest.param(ANNOUNCED, 201, b"hello", id="announced"),
        pytest.param(NO_REASON, 404, b"", id="no-reason"),
    ],
)
@given(data=st.data())
def test_however_it_is_cut_the_answer_is_the_same(
    raw: bytes, status: int, body: bytes, data: st.DataObject
):
    cuts = sorted(data.draw(st.sets(st.integers(1, len(raw) - 1))))
    ends = [*cuts, len(raw)]
    pieces = [raw[start:end] for start, end in zip([0, *cuts], ends, strict=True)]
    parser = ResponseParser()
    for piece in pieces:
        assert not parser.is_complete
        parser.feed(piece)
    assert parser.is_complete
    assert parser.head is not None
    assert parser.head.status == status
    assert parser.take_body() == body
    parser.feed_eof()


def test_a_body_can_be_taken_as_it_comes():
    parser = read([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"])
    assert parser.take_body() == b"hel"
    assert parser.take_body() == b""
    parser.feed(b"lo\r\n3\r\nabc")
    assert parser.take_body() == b"loabc"
    assert not parser.is_complete


def test_without_length_the_end_of_the_connection_is_the_end():
    parser = read([b"HTTP/1.0 200 OK\r\n\r\nab", b"cd"])
    assert not parser.is_complete
    parser.feed_eof()
    assert parser.is_complete
    assert parser.take_body() == b"abcd"


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(LENGTH[:30], id="in-the-head"),
        pytest.param(LENGTH[:-1], id="in-the-body"),
        pytest.param(CHUNKED[:-2], id="in-the-trailer"),
        pytest.param(CHUNKED[:60], id="in-a-chunk"),
    ],
)
def test_an_answer_that_stops_short_is_an_error(raw: bytes):
    parser = read([raw])
    with pytest.raises(WireError, match="the connection ended before the end of"):
        parser.feed_eof()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        pytest.param(b"SSH-2.0-x\r\n\r\n", "expected an HTTP/1.1 answer", id="another-protocol"),
        pytest.param(b"HTTP/1.1 abc\r\n\r\n", "expected an HTTP/1.1 answer", id="no-code"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "length of the body", id="length"
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
            "length of the body is b'9{40}', expected at most 4294967296",
            id="absurd-length",
        ),
        pytest.param(
            EMPTY_CHUNKS.replace(b"0\r\n\r\n", b"f" * 4000 + b"\r\n"),
            "size of a chunk is b'f{40}', expected at most",
            id="absurd-chunk",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "gzip", id="coding"
        ),
        pytest.param(
            EMPTY_CHUNKS.replace(b"0\r\n\r\n", b"-5\r\n\r\n"), "size of a chunk", id="negative"
        ),
        pytest.param(
            EMPTY_CHUNKS.replace(b"0\r\n\r\n", b"\r\n\r\n"), "size of a chunk", id="no-size"
        ),
        pytest.param(CHUNKED.replace(b"hello\r\n", b"hello!\r\n"), "end of a chunk", id="too-long"),
        pytest.param(LENGTH + b"HTTP/1.1", "8 bytes after the end", id="more-than-asked"),
        pytest.param(b"x" * (HEAD_BYTES_MAX + 1), "no end of line", id="endless-head"),
    ],
)
def test_what_is_no_answer_is_refused(raw: bytes, message: str):
    with pytest.raises(WireError, match=message):
        read([raw])


def test_headers_are_found_whatever_their_case():
    head = Head(b"HTTP/1.1 429 Too Many\r\nRETRY-AFTER:  7 \r\nX-Retry: 3")
    assert head.header(b"retry-after") == b"7"
    assert head.header(b"x-retry") == b"3"
    assert head.header(b"retry") is None


@pytest.mark.parametrize(
    ("head", "closes"),
    [
        pytest.param(b"HTTP/1.1 200 OK", False, id="stays-by-default"),
        pytest.param(b"HTTP/1.1 200 OK\r\nConnection: Close", True, id="close"),
        pytest.param(b"HTTP/1.0 200 OK", True, id="old-closes"),
        pytest.param(b"HTTP/1.0 200 OK\r\nConnection: keep-alive", False, id="old-stays"),
    ],
)
def test_whether_the_server_closes(head: bytes, closes: bool):
    assert Head(head).closes is closes
