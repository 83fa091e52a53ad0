"""Which plugins of a profile let pods of one shape share what was found out for one of them."""

from collections.abc import Hashable

from kubestow.api.pod_info import PodInfo
from kubestow.framework.plugin import (
    ChangingShares,
    ConditionallySharing,
    RowFilter,
    RowScore,
    SharingPlugin,
)
from kubestow.framework.profile import Profile

# What each plugin that does not share for every pod says to a shape.
Token = tuple[Hashable | None, ...]
# What these answers depend on besides the shape.
Versions = tuple[Hashable, ...]


class Sharing:
    """Worked out once per profile."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        names = dict.fromkeys(
            name
            for steps in (
                profile.pre_filter_steps,
                profile.pre_score_steps,
                [(step.name, step.plugin) for step in profile.filter_steps],
                [(step.name, step.plugin) for step in profile.score_steps],
            )
            for name, _ in steps
        )
        plugins = {name: profile.plugins[name] for name in names}
        self._always = frozenset(
            name for name, plugin in plugins.items() if isinstance(plugin, SharingPlugin)
        )
        # Most plugins share whatever the pod asks for; only the others are asked.
        self._askers = [
            (name, plugin)
            for name, plugin in plugins.items()
            if isinstance(plugin, SharingPlugin) and isinstance(plugin, ConditionallySharing)
        ]
        # Looked up once: what a plugin can do is not quickly told.
        self.row_filters = {
            step.name: step.plugin
            for step in profile.filter_steps
            if isinstance(step.plugin, RowFilter)
        }
        self.row_scores = {
            step.name: step.plugin
            for step in profile.score_steps
            if isinstance(step.plugin, RowScore)
        }
        self._changing = [
            plugin for _, plugin in self._askers if isinstance(plugin, ChangingShares)
        ]

    def versions(self) -> Versions:
        """As long as these stay the same, so does every shape's token."""
        return tuple([plugin.share_version for plugin in self._changing])

    def token(self, pod: PodInfo) -> Token:
        """What each plugin that has to be asked says to sharing, in a fixed order."""
        return tuple([plugin.share(pod) for _, plugin in self._askers])

    def shared_names(self, token: Token) -> frozenset[str]:
        """The plugins that share, given their answers."""
        refusing = (
            name for (name, _), answer in zip(self._askers, token, strict=True) if answer is None
        )
        return self._always.difference(refusing)
