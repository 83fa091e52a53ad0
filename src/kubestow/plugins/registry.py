"""Every built-in plugin by name.

A profile picks from here; plugins from outside are merged into a copy of it. The order is the
default order of execution (spec 04 §2.6), so that a reader finds a plugin where it runs.
"""

from typing import Any, Final, Protocol

from kubestow.config.plugin_args import PluginArgs
from kubestow.framework.plugin import Plugin


class PluginClass(Protocol):
    """What the class of a plugin offers to whoever builds a profile.

    `args_type` is the type its arguments decode to; None if it takes none.
    """

    @property
    def name(self) -> str: ...

    @property
    def args_type(self) -> type[PluginArgs] | None: ...

    # Any: every plugin has its own type of arguments, and this map cannot say which.
    def __call__(self, args: Any, handle: Any) -> Plugin: ...


_CLASSES: Final[tuple[PluginClass, ...]] = ()

REGISTRY: Final[dict[str, PluginClass]] = {plugin.name: plugin for plugin in _CLASSES}
