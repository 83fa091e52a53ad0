"""A client that notes how its requests end."""

from typing import Any, Final

from kubestow.api.meta import ApiObject
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.requests import (
    CreateEvent,
    IsServed,
    ListAndWatch,
    ListObjects,
    Request,
    WatchObjects,
)
from kubestow.errors import ApiError
from kubestow.recording.recorder import Recorder

# Lists and watches are those of informers, which the recorder follows; events are not read by a
# scheduler.
_NOT_NOTED: Final = (CreateEvent, IsServed, ListAndWatch, ListObjects, WatchObjects)

# Verb, kind, namespace and name of a request.
_Alike = tuple[str, type[ApiObject], str, str]


class RecordingClient(ClusterClient):
    """Sends everything to another client, and notes answers just before the caller gets them."""

    def __init__(self, client: ClusterClient, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder
        # The requests under way that are alike, in the order in which they were sent. Their answers
        # may come in another.
        self._open: dict[_Alike, list[object]] = {}

    @property
    def host(self) -> str:
        return self._client.host

    async def send(self, request: Request) -> Any:
        if isinstance(request, _NOT_NOTED):
            return await self._client.send(request)
        alike: _Alike = (request.verb, request.kind, *request.key)
        sent = object()
        under_way = self._open.setdefault(alike, [])
        under_way.append(sent)
        try:
            answer = await self._client.send(request)
        except ApiError as error:
            self._recorder.answered(*alike, error, under_way.index(sent))
            raise
        else:
            self._recorder.answered(*alike, answer, under_way.index(sent))
            return answer
        finally:
            under_way.remove(sent)
            if not under_way:
                del self._open[alike]
