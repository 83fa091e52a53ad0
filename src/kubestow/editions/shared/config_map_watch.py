"""Ends a process whose Policy is in a ConfigMap that changes.

Rules are fixed when a scheduler is built, so the new Policy needs a new process: the supervisor
starts one. v1.9 itself read its ConfigMap at the start only, and ran on with the old Policy.
"""

import asyncio
import logging
from typing import Final

from kubestow.api.config_map import ConfigMap
from kubestow.cluster.client import ClusterClient
from kubestow.errors import ApiError, NotFoundError
from kubestow.service.run import RunError

log = logging.getLogger(__name__)

# Between two watches: one ended in time, or failed.
AGAIN_S: Final = 2.0


async def end_on_change(client: ClusterClient, known: ConfigMap) -> None:
    """Raise RunError once the data of the ConfigMap differs, or it is deleted."""
    namespace, name = known.metadata.namespace, known.metadata.name
    while True:
        try:
            current = await client.get(ConfigMap, namespace, name)
            _compare(known, current)
            await _watch(client, known, current.metadata.resource_version)
        except NotFoundError as error:
            raise RunError(f"the policy config map {namespace}/{name} was deleted") from error
        except ApiError as error:
            log.warning("cannot watch the policy config map %s/%s: %s", namespace, name, error)
        await asyncio.sleep(AGAIN_S)


async def _watch(client: ClusterClient, known: ConfigMap, version: str) -> None:
    watch = await client.watch(
        ConfigMap,
        namespace=known.metadata.namespace,
        field_selector=f"metadata.name={known.metadata.name}",
        resource_version=version,
    )
    try:
        while batch := await watch.next_batch():
            for event in batch:
                if event.type == "DELETED":
                    raise NotFoundError("deleted")
                if event.type in ("ADDED", "MODIFIED"):
                    _compare(known, event.object)
    finally:
        watch.close()


def _compare(known: ConfigMap, current: ConfigMap) -> None:
    if current.data != known.data:
        reference = f"{known.metadata.namespace}/{known.metadata.name}"
        raise RunError(f"the policy config map {reference} has changed; start again to use it")
