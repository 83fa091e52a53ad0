"""One connection to the server: a request goes out, its answer comes back.

    idle ──exchange──► waiting for the answer ──complete──► idle
                          │                └──a stream──► every piece goes to the sink
                          └──broken off, cancelled, malformed──► closed

There is no pipelining: one request at a time. A connection whose answer was not read to its end is
closed, never used again.

Not here: how a connection comes about (`dial`), who keeps it (`pool`), what answers mean
(`error_response`).
"""

import asyncio
from typing import NamedTuple, Protocol, cast

from kubestow.cluster.http.wire import Head, ResponseParser, WireError
from kubestow.errors import UnreachableCause, UnreachableError


class Response(NamedTuple):
    """An answer read to its end; of a stream only the head, the body is empty."""

    head: Head
    body: bytes


class Sink(Protocol):
    """Where the body of a stream goes."""

    def feed(self, data: bytes) -> None: ...

    def end(self, error: UnreachableError | None) -> None:
        """Nothing more will come; with an error if the server did not mean to stop there."""
        ...


class Connection(asyncio.Protocol):
    """A connection that has been made; see the picture above."""

    def __init__(self, peer: str) -> None:
        self.peer = peer  # for messages
        self.idle_since_s = 0.0  # for the pool
        self._transport: asyncio.Transport | None = None
        self._parser: ResponseParser | None = None
        self._answer: asyncio.Future[Response] | None = None
        self._sink: Sink | None = None
        self._sinks_any_status = False

    @property
    def is_usable(self) -> bool:
        """Whether another request can be sent."""
        transport = self._transport
        return transport is not None and self._parser is None and not transport.is_closing()

    async def exchange(
        self, request: bytes, sink: Sink | None = None, *, any_status: bool = False
    ) -> Response:
        """Send a request and return its answer; UnreachableError if none comes.

        With a sink, the answer returns as soon as its head says that all is well, and the body goes
        to the sink, piece by piece. Any other answer is read to its end as usual, unless the sink
        takes bodies of any status.
        """
        transport = self._transport
        assert transport is not None
        assert self._parser is None, "one request at a time"
        if transport.is_closing():
            message = f"the connection to {self.peer} has ended"
            raise UnreachableError(message, cause="broken off")
        self._parser = ResponseParser()
        self._sink = sink
        self._sinks_any_status = any_status
        self._answer = answer = asyncio.get_running_loop().create_future()
        transport.write(request)
        try:
            return await answer
        except asyncio.CancelledError:
            self.close()  # the answer may still come, to nobody
            raise

    def pause(self) -> None:
        """Let the server wait: read nothing more for now."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """End the connection at once. A stream's sink hears no more of it."""
        self._sink = None
        if self._transport is not None:
            self._transport.abort()

    def fail(
        self,
        message: str,
        *,
        cause: UnreachableCause = "broken off",
        source: Exception | None = None,
    ) -> None:
        """End the connection at once; who waits for an answer or reads a stream hears why."""
        error = UnreachableError(message, cause=cause)
        error.__cause__ = source
        sink, self._sink = self._sink, None
        self._parser = None
        answer, self._answer = self._answer, None
        self.close()
        if answer is None:
            if sink is not None:
                sink.end(error)
        elif not answer.done():
            answer.set_exception(error)

    # --- For the event loop -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Other loops than asyncio's own have transports of their own class.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        parser = self._parser
        if parser is None:
            # Nobody asked: the server says that it gives up on an idle connection.
            self.close()
            return
        try:
            parser.feed(data)
        except WireError as error:
            self.fail(f"{self.peer} sent what is no HTTP answer: {error}", source=error)
            return
        if parser.head is not None:
            self._advance(parser, parser.head)

    def connection_lost(self, exc: Exception | None) -> None:
        parser = self._parser
        if parser is None:
            return
        try:
            parser.feed_eof()
        except WireError as error:
            # A TLS alert (a certificate turned down) is no accident: it would come again.
            is_accident = exc is None or isinstance(exc, ConnectionError)
            self.fail(
                f"the connection to {self.peer} broke off: {exc or error}",
                cause="broken off" if is_accident else "other",
                source=exc or error,
            )
        else:
            assert parser.head is not None
            self._advance(parser, parser.head)

    # --- Steps ------------------------------------------------------------------------------------

    def _advance(self, parser: ResponseParser, head: Head) -> None:
        """Pass on what has arrived, and see whether that was all."""
        sink = self._sink if self._sinks_any_status or head.status // 100 == 2 else None
        if sink is not None:
            self._settle(Response(head, b""))
            if body := parser.take_body():
                sink.feed(body)
        if not parser.is_complete:
            return
        self._parser = self._sink = None
        if head.closes:
            self.close()
        if sink is not None:
            sink.end(None)
        else:
            self._settle(Response(head, parser.take_body()))

    def _settle(self, response: Response) -> None:
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_result(response)
