"""One connection to the server: a request goes out, its answer comes back.

    idle ──exchange──► waiting for the answer ──complete──► idle
                          │                └──a stream──► every piece goes to the sink
                          └──broken off, cancelled, malformed──► closed

There is no pipelining: one request at a time. A connection whose answer was not read to its end is
closed, never used again.

Not here: making connections (`dial`), keeping them (`pool`), the meaning of answers
(`error_response`).
"""

import asyncio
import logging
from typing import NamedTuple, Protocol, cast

from kubestow.cluster.http.wire import Head, ResponseParser, WireError
from kubestow.errors import UnreachableCause, UnreachableError

logger = logging.getLogger(__name__)


class SilenceLimits(NamedTuple):
    """How long a connection may be silent before it is left, to the next check.

    An API server ends a request after 60 s (its flag `--request-timeout`), so an answer always
    comes. On a watch it sends a bookmark about once a minute, except where nothing has ever
    changed; watching again is cheap then. Upstream has the same purpose for its HTTP/2 pings.
    """

    check_s: float = 5.0
    answer_s: float = 75.0
    stream_s: float = 150.0


class Response(NamedTuple):
    """An answer read to its end; of a stream only the head, the body is empty."""

    head: Head
    body: bytes


class Sink(Protocol):
    """Receives the body of a stream."""

    def feed(self, data: bytes) -> None: ...

    def end(self, error: UnreachableError | None) -> None:
        """The stream has ended; with an error if the connection was lost."""
        ...


class Connection(asyncio.Protocol):
    """A connection that has been made; see the diagram above."""

    def __init__(self, peer: str) -> None:
        self.peer = peer  # for messages
        self.idle_since_s = 0.0  # for the pool
        self._transport: asyncio.Transport | None = None
        self._parser: ResponseParser | None = None
        self._answer: asyncio.Future[Response] | None = None
        self._sink: Sink | None = None
        self._sinks_any_status = False
        self._has_moved = False
        self._silent_checks = 0
        self._is_paused = False

    @property
    def is_usable(self) -> bool:
        """Whether another request can be sent."""
        transport = self._transport
        return transport is not None and self._parser is None and not transport.is_closing()

    async def exchange(
        self, request: bytes, sink: Sink | None = None, *, any_status: bool = False
    ) -> Response:
        """Send a request and return its answer; UnreachableError if there is none.

        With a sink, an answer of status 2xx is returned as soon as its head has arrived, and the
        body goes to the sink, piece by piece. Any other answer is read to its end as usual, unless
        `any_status` is set.
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
        self._has_moved = True
        transport.write(request)
        try:
            return await answer
        except asyncio.CancelledError:
            self.close()  # the answer may still come and must not be taken for the next one
            raise

    def pause(self) -> None:
        """Read nothing more for now, so that the server has to wait."""
        if self._transport is not None and not self._transport.is_closing():
            self._is_paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._is_paused = False
            self._transport.resume_reading()

    def check_silence(self, limits: "SilenceLimits") -> None:
        """Fail if nothing has arrived for too long. Called every `limits.check_s`.

        Checks are counted, not seconds: after a pause of this process the data that arrived
        meanwhile may not have been read yet.
        """
        if self._parser is None or self._is_paused or self._has_moved:
            self._has_moved = False
            self._silent_checks = 0
            return
        self._silent_checks += 1
        silent_s = self._silent_checks * limits.check_s
        if silent_s >= (limits.answer_s if self._answer is not None else limits.stream_s):
            message = f"nothing arrived from {self.peer} for {silent_s:g} s"
            logger.warning("%s; leaving the connection", message)
            self.fail(message)

    def close(self) -> None:
        """End the connection at once, without a call to a stream's sink."""
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
        """End the connection at once; a waiting `exchange` or a stream's sink gets the error."""
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
        # Event loops other than asyncio's have their own transport classes.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._has_moved = True
        parser = self._parser
        if parser is None:
            # Data without a request: the server announces that it closes an idle connection.
            self.close()
            return
        try:
            parser.feed(data)
        except WireError as error:
            self.fail(f"{self.peer} sent no valid HTTP answer: {error}", source=error)
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
            # A TLS alert (a rejected certificate) is not transient: it would come again.
            is_transient = exc is None or isinstance(exc, ConnectionError)
            self.fail(
                f"the connection to {self.peer} broke off: {exc or error}",
                cause="broken off" if is_transient else "other",
                source=exc or error,
            )
        else:
            assert parser.head is not None
            self._advance(parser, parser.head)

    # --- Steps ------------------------------------------------------------------------------------

    def _advance(self, parser: ResponseParser, head: Head) -> None:
        """Pass on what has arrived, and finish the answer if it is complete."""
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
