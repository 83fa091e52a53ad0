"""Notes the answers of extenders."""

import zlib
from concurrent.futures import Future

from kubestow.cluster.http.proxy import Proxy
from kubestow.cluster.http.tls import TlsContexts
from kubestow.engine.extenders import ExtenderChain, HttpExtender
from kubestow.engine.extenders.post import Post, PostResponse
from kubestow.errors import ExtenderError
from kubestow.recording.recorder import Recorder
from kubestow.redaction import without_secrets


class RecordingPost:
    """Sends a request as another function does."""

    def __init__(self, post: Post, recorder: Recorder) -> None:
        self._post = post
        self._recorder = recorder

    def __call__(
        self,
        url: str,
        body: bytes,
        *,
        timeout_s: float,
        body_bytes_max: int,
        tls: TlsContexts,
        proxy: Proxy | None,
    ) -> "Future[PostResponse]":
        response = self._post(
            url,
            body,
            timeout_s=timeout_s,
            body_bytes_max=body_bytes_max,
            tls=tls,
            proxy=proxy,
        )
        response.add_done_callback(lambda ended: self._ended(ended, checksum_of(url, body)))
        return response

    def _ended(self, response: "Future[PostResponse]", checksum: int) -> None:
        if response.cancelled():
            return
        error = response.exception()
        if error is None:
            self._recorder.posted(checksum, response.result().code, response.result().body, "")
        elif isinstance(error, ExtenderError):
            self._recorder.posted(checksum, 0, b"", str(error))


def checksum_of(url: str, body: bytes) -> int:
    """The key by which an answer is found again: the same scheduler sends the same request.

    Without the password of an address, which is not in the recording: the sum would confirm a
    guess.
    """
    return zlib.crc32(body, zlib.crc32(without_secrets(url).encode()))


def record_posts(extenders: ExtenderChain, recorder: Recorder) -> None:
    """Note all answers of these extenders from now on."""
    for extender in extenders.extenders:
        if isinstance(extender, HttpExtender):
            extender.post = RecordingPost(extender.post, recorder)
