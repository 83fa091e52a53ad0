"""Which version of the scheduler with plugins is built: its parts and its plugins.

Today's is here. Those of v1.17 and v1.20 are in `editions.choosing`, which is imported only if
one of them is to run.
"""

from typing import Final, NamedTuple

from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.profiles import Registry
from kubestow.plugins.registry import REGISTRY


class Edition(NamedTuple):
    """`factory` connects the parts; `registry` has the plugins that profiles select from."""

    factory: type[SchedulerFactory] = SchedulerFactory
    registry: Registry = REGISTRY


TODAY: Final = Edition()
