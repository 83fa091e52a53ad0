"""Which PreEnqueue plugin keeps a pod out of the queue."""

from kubestow.api.pod import Pod
from kubestow.framework.profile import Profile, plugin_name
from kubestow.framework.status import Status


def gate_of(profile: Profile, pod: Pod) -> Status | None:
    """The status of the first plugin that holds the pod back; None if it may be tried."""
    for plugin in profile.pre_enqueue:
        try:
            status = plugin.pre_enqueue(pod)
        except Exception as error:  # A plugin of a user may raise anything; its pod waits.
            status = Status.from_error(error)
        if status is not None and not status.is_success:
            return status.with_plugin(plugin_name(plugin))
    return None
