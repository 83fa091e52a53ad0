"""Runs the plugins that may make room for a group that does not fit (spec 12 §15.5)."""

from typing import Final

from kubestow.errors import PluginError
from kubestow.framework.faults import fault_status
from kubestow.framework.plugin import GroupNominations, UnplacedGroup
from kubestow.framework.profile import Profile, plugin_name
from kubestow.framework.status import Code, Status

POD_GROUP_POST_FILTER: Final = "PodGroupPostFilter"


def run_pod_group_post_filter(
    profile: Profile, group: UnplacedGroup
) -> tuple[GroupNominations | None, Status]:
    """All plugins until one succeeds, or ends the attempt."""
    reasons: list[str] = []
    first_plugin = ""
    for plugin in profile.pod_group_post_filter:
        name = plugin_name(plugin)
        try:
            nominations, status = plugin.pod_group_post_filter(group)
        except BaseException as error:  # A fault in one plugin must not stop the scheduler.
            nominations, status = None, fault_status(error, name, POD_GROUP_POST_FILTER)
        if status.is_success or status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return nominations, status.with_plugin(name)
        if not status.is_rejected:
            text = f'error in "{name}" PodGroupPostFilter plugins: {status.as_error()}'
            return None, Status(Code.ERROR, error=PluginError(text), plugin=name)
        reasons.extend(status.all_reasons)
        first_plugin = first_plugin or name
    return None, Status(Code.UNSCHEDULABLE, *reasons, plugin=first_plugin)
