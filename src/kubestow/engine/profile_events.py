"""The event sink of plugins and engine: events reported by a profile."""

from collections.abc import Callable

from kubestow.api.meta import ApiObject
from kubestow.api.pod import Pod
from kubestow.cluster.events import EventRecorder


class ProfileEvents:
    def __init__(self, recorder: EventRecorder, profile_name: str) -> None:
        self._recorder = recorder
        self._profile_name = profile_name
        # Called with the pod, the type, the reason and the note of each event, if it is set.
        self.on_recorded: Callable[[Pod, str, str, str], None] | None = None

    def record(
        self,
        regarding: Pod,
        *,
        type: str,
        reason: str,
        action: str,
        note: str,
        related: ApiObject | None = None,
    ) -> None:
        self._recorder.record(
            regarding,
            reporter=self._profile_name,
            type="Warning" if type == "Warning" else "Normal",
            reason=reason,
            action=action,
            note=note,
            related=related,
        )
        if self.on_recorded is not None:
            self.on_recorded(regarding, type, reason, note)
