"""What an edition with plugins computes in its own way: the parts that are built, and plugins."""

from typing import Final, NamedTuple

from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.profiles import Registry
from kubestow.plugins.registry import REGISTRY


class Rules(NamedTuple):
    """`factory` connects the parts; `registry` has the plugins that profiles select from."""

    factory: type[SchedulerFactory] = SchedulerFactory
    registry: Registry = REGISTRY


# Those of v1.36.
CORE_RULES: Final = Rules()
