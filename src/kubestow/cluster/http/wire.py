"""HTTP/1.1 as bytes: an answer is read as it arrives, in pieces of any size.

Reads what an API server and the proxies before it send: bodies of a given length, in chunks, or up
to the end of the connection. Header names are compared in lower case; values are too, because the
few that are read here are numbers and tokens.

Invariant: however the bytes of an answer are cut up, head and body come out the same.
Not here: sockets (`connection`), the meaning of an answer (`error_response`).
"""

from typing import Final

HEAD_BYTES_MAX: Final = 64 * 1024  # an answer with a longer head is not from an API server
BODY_BYTES_MAX: Final = 2**32  # of an announced length: no list of an API server is as long
_LINE_BYTES_MAX: Final = 4 * 1024  # of a chunk's size, and of a trailer
_END_OF_HEAD: Final = b"\r\n\r\n"
_HEX_DIGITS: Final = b"0123456789abcdefABCDEF"


class WireError(Exception):
    """The data is not an HTTP/1.1 answer, or not a complete one."""


class CutOffError(WireError):
    """The connection ended before the answer did."""


class Head:
    """The status of an answer and its header lines."""

    __slots__ = ("_lines", "status")

    def __init__(self, raw: bytes) -> None:
        # "HTTP/1.1 200 OK": the reason after the number may be missing.
        if not raw.startswith(b"HTTP/1.") or not raw[9:12].isdigit():
            raise WireError(f"expected an HTTP/1.1 answer, found {raw[:40]!r}")
        self.status: Final = int(raw[9:12])
        self._lines = raw.lower()

    def header(self, name: bytes) -> bytes | None:
        """The value of a header, in lower case; None if it is absent. The name in lower case."""
        lines = self._lines
        start = lines.find(b"\r\n" + name + b":")
        if start < 0:
            return None
        start += len(name) + 3
        end = lines.find(b"\r\n", start)
        return lines[start : end if end >= 0 else None].strip()

    @property
    def closes(self) -> bool:
        """Whether the server ends the connection after this answer."""
        value = self.header(b"connection")
        if self._lines.startswith(b"http/1.0"):
            return value is None or b"keep-alive" not in value
        return value is not None and b"close" in value


class ResponseParser:
    """Reads one answer.

        head ──► body: length │ chunks │ to the end ──► complete

    Feed it bytes; then `head` is set if it has arrived, `take_body` returns the body that has
    arrived since the last call, and `is_complete` says whether that was all.
    """

    __slots__ = (
        "_after_chunk", "_chunked", "_left", "_parts", "_rest", "_to_eof", "_trailing", "head"
    )  # fmt: skip

    def __init__(self) -> None:
        self.head: Head | None = None
        self._parts: list[bytes] = []
        self._rest = b""  # what cannot be read before more arrives
        self._left = 0  # bytes to come of the body or of the present chunk
        self._chunked = False
        self._after_chunk = False  # its line end is still to come
        self._trailing = False  # after the last chunk
        self._to_eof = False

    @property
    def is_complete(self) -> bool:
        return self.head is not None and not self._left and not self._chunked and not self._to_eof

    def take_body(self) -> bytes:
        parts = self._parts
        if not parts:
            return b""
        self._parts = []
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def feed(self, data: bytes) -> None:
        if self._rest:
            data = self._rest + data
            self._rest = b""
        position = 0
        while self.head is None:
            end = data.find(_END_OF_HEAD, position)
            if end < 0:
                self._keep(data[position:], HEAD_BYTES_MAX)
                return
            self._begin(Head(data[position:end]))
            position = end + len(_END_OF_HEAD)
        if self._chunked:
            position = self._feed_chunks(data, position)
        elif position < len(data):
            position = self._feed_plain(data, position)
        if self.is_complete and position < len(data):
            raise WireError(f"{len(data) - position} bytes after the end of the answer")

    def feed_eof(self) -> None:
        """The connection has ended; WireError unless the answer may end that way."""
        if self._to_eof:
            self._to_eof = False
        elif not self.is_complete:
            what = "the answer" if self.head is not None else "an answer"
            raise CutOffError(f"the connection ended before the end of {what}")

    def _begin(self, head: Head) -> None:
        if head.status < 200:
            return  # "100 Continue" and the like announce the real answer
        self.head = head
        if head.status in (204, 304):
            return
        coding = head.header(b"transfer-encoding")
        length = head.header(b"content-length")
        if coding is not None and coding != b"identity":
            if coding != b"chunked":
                raise WireError(f"cannot read the transfer encoding {coding.decode('latin-1')!r}")
            self._chunked = True
        elif length is None:
            self._to_eof = True
        else:
            self._left = _size_in(length, "the length of the body")

    def _feed_plain(self, data: bytes, position: int) -> int:
        if self._to_eof:
            self._parts.append(data[position:] if position else data)
            return len(data)
        part = data[position : position + self._left]
        if part:
            self._parts.append(part)
            self._left -= len(part)
        return position + len(part)

    def _feed_chunks(self, data: bytes, position: int) -> int:
        size = len(data)
        while position < size and self._chunked:
            if self._left:
                part = data[position : position + self._left]
                self._parts.append(part)
                self._left -= len(part)
                position += len(part)
                self._after_chunk = not self._left
                continue
            end = data.find(b"\r\n", position)
            if end < 0:
                self._keep(data[position:], _LINE_BYTES_MAX)
                return size
            self._read_line(data[position:end])
            position = end + 2
        return position

    def _read_line(self, line: bytes) -> None:
        if self._trailing:
            if not line:
                self._chunked = False
            return
        if self._after_chunk:
            if line:
                raise WireError(f"expected the end of a chunk, found {line[:40]!r}")
            self._after_chunk = False
            return
        digits = line.partition(b";")[0].strip()
        if not digits or digits.strip(_HEX_DIGITS):
            raise WireError(f"expected the size of a chunk, found {line[:40]!r}")
        self._left = _size_in(digits, "the size of a chunk", base=16)
        self._trailing = not self._left

    def _keep(self, rest: bytes, bytes_max: int) -> None:
        if len(rest) > bytes_max:
            raise WireError(f"no end of line within {bytes_max} bytes")
        self._rest = rest


def _size_in(digits: bytes, what: str, *, base: int = 10) -> int:
    # Python refuses to read a number of thousands of digits.
    if base == 10 and not digits.isdigit():
        raise WireError(f"{what} is {digits[:40]!r}, expected a number")
    digits = digits.lstrip(b"0")
    if (
        len(digits) > len(str(BODY_BYTES_MAX))
        or (size := int(digits or b"0", base)) > BODY_BYTES_MAX
    ):
        raise WireError(f"{what} is {digits[:40]!r}, expected at most {BODY_BYTES_MAX}")
    return size
