"""Answers that were reused are asked for again when a term or a namespace appears."""

from kubestow.api.meta import ObjectMeta
from kubestow.api.pod_info import PodInfo
from kubestow.api.workload import Namespace
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.config.plugin_args import InterPodAffinityArgs
from kubestow.plugins.inter_pod_affinity import InterPodAffinity
from kubestow.testing import make_cache, make_handle, make_node, make_pod
from kubestow.testing.topology import make_affinity, make_pod_term


def test_the_version_follows_terms_and_namespaces_but_not_pods() -> None:
    cache, snapshot, objects = make_cache([make_node("n1")]), Snapshot(), ClusterObjects()
    handle = make_handle(snapshot=snapshot, objects=objects)
    reuse = InterPodAffinity(InterPodAffinityArgs(), handle).reuse
    assert reuse.version is not None

    def version_with(name: str, app: str | None) -> object:
        affinity = (
            None if app is None else make_affinity(near=[make_pod_term("zone", f"app={app}")])
        )
        cache.add_pod(PodInfo(make_pod(name, node="n1", affinity=affinity)))
        snapshot.refresh(cache)
        assert reuse.version is not None
        return reuse.version()

    without = version_with("plain", None)
    assert version_with("plain-2", None) == without
    web = version_with("web", "web")
    assert web != without
    assert version_with("web-2", "web") == web
    cache_too = version_with("cache", "cache")
    assert cache_too not in (without, web)
    objects.put(Namespace(metadata=ObjectMeta(name="new")))
    assert reuse.version() not in (without, web, cache_too)
