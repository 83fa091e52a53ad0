"""The cache of v1.20: other error texts, and assumed pods expire (spec 03 §14)."""

import logging
from typing import Final

from kubestow.api.meta import object_ref
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.editions.shared.cache import CacheWithExpiry
from kubestow.errors import CacheCorruptedError, CacheError

log = logging.getLogger(__name__)

_CORRUPTED: Final = "Schedulercache is corrupted and can badly affect scheduling decisions"


class Cache120(CacheWithExpiry):
    """The cache of v1.20. Unlike v1.17's it only logs that a node is missing."""

    def forget_pod(self, pod: Pod) -> None:
        key = self._key(pod)
        cached = self._pods.get(key)
        if cached is not None and cached.pod.spec.node_name != pod.spec.node_name:
            raise CacheError(
                f"pod {key} was assumed on {pod.spec.node_name} "
                f"but assigned to {cached.pod.spec.node_name}"
            )
        if cached is None or key not in self._assumed:
            raise CacheError(f"pod {key} wasn't assumed so cannot be forgotten")
        self._take_from_node(pod)
        self._drop(key)

    def add_pod(self, pod: PodInfo) -> None:
        key = self._key(pod.pod)
        cached = self._pods.get(key)
        if cached is None:
            self._add(pod)
            return
        if key not in self._assumed:
            raise CacheError(f"pod {key} was already in added state")
        assumed = cached.pod
        if assumed.spec.node_name != pod.pod.spec.node_name:
            log.warning(
                "Pod %s was assumed to be on %s but got added to %s",
                key,
                assumed.spec.node_name,
                pod.pod.spec.node_name,
            )
            try:
                self._take_from_node(assumed)
            except CacheError as error:
                self._report_failed_removal(error)
            self._put_on_node(pod)
        # On the same node only the entry changes: the node's sums stay as assumed.
        self._assumed.discard(key)
        self._deadlines_ns.pop(key, None)
        self._pods[key] = pod

    def update_pod(self, old: Pod, new: PodInfo) -> None:
        key = self._key(old)
        cached = self._pods.get(key)
        if cached is None or key in self._assumed:
            raise CacheError(f"pod {key} is not added to scheduler cache, so cannot be updated")
        if cached.pod.spec.node_name != new.pod.spec.node_name:
            log.error("Pod %s updated on a different node than previously added to.", key)
            raise CacheCorruptedError(_CORRUPTED)
        self._take_from_node(old)
        self._put_on_node(new)
        # Under the old key, even if the UID has changed.
        self._pods[key] = new

    def remove_pod(self, pod: Pod) -> None:
        key = self._key(pod)
        cached = self._pods.get(key)
        if cached is None or key in self._assumed:
            raise CacheError(
                f"pod {key} is not found in scheduler cache, so cannot be removed from it"
            )
        if cached.pod.spec.node_name != pod.spec.node_name:
            log.error(
                "Pod %s was assumed to be on %s but got added to %s",
                key,
                pod.spec.node_name,
                cached.pod.spec.node_name,
            )
            raise CacheCorruptedError(_CORRUPTED)
        self._take_from_node(cached.pod)
        self._drop(key)

    # --- what the releases do differently ---

    def _key(self, pod: Pod) -> str:
        uid = pod.metadata.uid
        if not uid:
            raise CacheError("Cannot get cache key for pod with empty UID")
        return uid

    def _describe(self, pod: Pod) -> str:
        return pod.metadata.uid

    def _note_unfinished(self, pod: Pod) -> None:
        text = "Couldn't expire cache for pod %s. Binding is still in progress."
        log.info(text, object_ref(pod.metadata))

    def _report_failed_removal(self, error: CacheError) -> None:
        log.error("RemovePod failed: %s", error)

    def _report_missing_node(self, name: str, pod: Pod) -> None:
        text = "node %s not found when trying to remove pod %s"
        log.error(text, name, object_ref(pod.metadata))
