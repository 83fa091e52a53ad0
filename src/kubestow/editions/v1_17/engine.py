"""The scheduler of v1.17: that of v1.20 with another cache and other texts (spec 04 §19.2)."""

from typing import ClassVar

from kubestow.cache.cache import Cache
from kubestow.cache.snapshot import Snapshot
from kubestow.editions.v1_17.cache import Cache117, Snapshot117
from kubestow.editions.v1_20.engine.factory import FactoryV120
from kubestow.editions.v1_20.engine.failure import Binder120
from kubestow.framework.status import Status


class Binder117(Binder120):
    """There was no plugin for the default binding, so none is named."""

    rejected: ClassVar[str] = "Binding rejected: "

    def _binding_error(self, status: Status) -> str:
        return status.message.removeprefix('running Bind plugin "DefaultBinder": ')


class FactoryV117(FactoryV120):
    binder_type = Binder117

    def make_cache(self) -> Cache:
        return Cache117(self.clock)

    def make_snapshot(self) -> Snapshot:
        return Snapshot117()
