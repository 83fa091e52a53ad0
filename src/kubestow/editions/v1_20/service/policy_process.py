"""The process of a v1.17 or v1.20 scheduler: today's, which also watches the Policy's ConfigMap."""

from typing import Any

from kubestow.api.config_map import ConfigMap
from kubestow.editions.shared.config_map_watch import end_on_change
from kubestow.service.run import SchedulerProcess


class PolicyProcess(SchedulerProcess):
    # Any: the arguments are those of a SchedulerProcess.
    def __init__(self, *args: Any, config_map: ConfigMap | None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._config_map = config_map

    async def _watch(self) -> None:
        if self._config_map is not None:
            self._spawn(end_on_change(self._connections.main, self._config_map))
        await super()._watch()
