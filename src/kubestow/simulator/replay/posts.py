"""RecordedAnswers the requests to extenders as a recording says."""

from collections import defaultdict, deque
from collections.abc import Iterable
from concurrent.futures import Future

from kubestow.cluster.http.proxy import Proxy
from kubestow.cluster.http.tls import TlsContexts
from kubestow.engine.extenders import ExtenderChain, HttpExtender
from kubestow.engine.extenders.post import PostResponse
from kubestow.errors import ExtenderError
from kubestow.recording.format import Posted
from kubestow.recording.posts import checksum_of
from kubestow.redaction import without_secrets


class RecordedPosts:
    """In place of `post_json`: the answers to equal requests come in their order."""

    def __init__(self, answers: Iterable[Posted]) -> None:
        self._answers: defaultdict[int, deque[Posted]] = defaultdict(deque)
        for answer in answers:
            self._answers[answer.request].append(answer)

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
        future: Future[PostResponse] = Future()
        answers = self._answers[checksum_of(url, body)]
        if not answers:
            future.set_exception(
                ExtenderError(
                    f'Post "{without_secrets(url)}": this request is not in the recording'
                )
            )
            return future
        answer = answers.popleft()
        if answer.error:
            future.set_exception(ExtenderError(answer.error))
        else:
            future.set_result(PostResponse(answer.code, answer.text))
        return future


def replay_posts(extenders: ExtenderChain, posts: RecordedPosts) -> None:
    """Let these extenders answer from the recording."""
    for extender in extenders.extenders:
        if isinstance(extender, HttpExtender):
            extender.post = posts
