"""Spec 07 §2.2: decided objects hold for one version of the stored object."""

import pytest

from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.cache.objects import ClusterObjects
from kubestow.errors import PluginError
from kubestow.plugins.volume_binding.assume_cache import AssumeCache
from kubestow.testing.storage import make_claim, make_volume

Volumes = AssumeCache[PersistentVolume]


@pytest.fixture
def objects() -> ClusterObjects:
    objects = ClusterObjects()
    objects.put(make_volume("pv", version=4))
    return objects


@pytest.fixture
def cache(objects: ClusterObjects) -> Volumes:
    return AssumeCache(objects.persistent_volumes, "persistentvolumes")


DECIDED = make_volume("pv", version=4, claim="default/c")


def test_the_decided_object_is_shown_over_the_stored_one(
    objects: ClusterObjects, cache: Volumes
) -> None:
    stored = objects.persistent_volumes.get("pv")
    assert cache.get("", "pv") is stored
    cache.assume(DECIDED)
    assert cache.get("", "pv") is DECIDED
    assert cache.stored("", "pv") is stored
    assert cache.shown_objects() == [DECIDED]
    assert cache.assumed() == [DECIDED]


def test_restoring_shows_the_stored_object_again(objects: ClusterObjects, cache: Volumes) -> None:
    cache.assume(DECIDED)
    cache.restore(DECIDED)
    assert cache.get("", "pv") is objects.persistent_volumes.get("pv")
    cache.restore(DECIDED)  # Once more does nothing.


def test_restoring_another_version_does_nothing(cache: Volumes) -> None:
    cache.assume(DECIDED)
    cache.restore(make_volume("pv", version=3))
    assert cache.get("", "pv") is DECIDED


@pytest.mark.parametrize("version", [3, 5])
def test_whatever_the_watch_brings_next_wins(
    objects: ClusterObjects, cache: Volumes, version: int
) -> None:
    cache.assume(DECIDED)
    newer = make_volume("pv", version=version)
    objects.put(newer)
    assert cache.get("", "pv") is newer
    assert cache.assumed() == []


def test_the_same_version_again_leaves_the_decision(
    objects: ClusterObjects, cache: Volumes
) -> None:
    cache.assume(DECIDED)
    objects.put(make_volume("pv", version=4))
    assert cache.get("", "pv") is DECIDED


def test_a_deleted_object_takes_the_decision_with_it(
    objects: ClusterObjects, cache: Volumes
) -> None:
    cache.assume(DECIDED)
    objects.persistent_volumes.remove("pv")
    assert cache.get("", "pv") is None
    assert cache.assumed() == []


def test_only_the_stored_version_can_be_assumed(cache: Volumes) -> None:
    with pytest.raises(PluginError) as raised:
        cache.assume(make_volume("pv", version=3))
    assert str(raised.value) == '"pv" is out of sync (stored: 4, assume: 3)'


def test_what_is_not_there_cannot_be_assumed(objects: ClusterObjects, cache: Volumes) -> None:
    with pytest.raises(PluginError) as raised:
        cache.assume(make_volume("gone"))
    assert str(raised.value) == 'persistentvolumes "gone" not found'
    claims = AssumeCache[PersistentVolumeClaim](
        objects.persistent_volume_claims, "persistentvolumeclaims"
    )
    with pytest.raises(PluginError) as raised:
        claims.assume(make_claim("gone"))
    assert str(raised.value) == 'persistentvolumeclaims "default/gone" not found'


def test_watchers_get_what_is_shown(objects: ClusterObjects, cache: Volumes) -> None:
    received: list[PersistentVolume | None] = []
    cache.watch(lambda _, shown: received.append(shown))
    cache.assume(DECIDED)
    cache.restore(DECIDED)
    newer = make_volume("pv", version=5)
    stored = objects.persistent_volumes.get("pv")
    objects.put(newer)
    objects.persistent_volumes.remove("pv")
    assert received == [DECIDED, stored, newer, None]
