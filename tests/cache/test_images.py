"""Which images are where, and which numbers a snapshot keeps using (spec 01 §10, 03 §4.3)."""

from kubestow.api.node import ContainerImage, Node, NodeStatus
from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.cache.images import ImageStates
from kubestow.cache.snapshot import Snapshot
from kubestow.testing import make_node, make_pod


def refreshed(snapshot: Snapshot, cache: Cache) -> dict[str, dict[str, tuple[int, int]]]:
    """By node and image: the size, and how many nodes have it."""
    snapshot.refresh(cache)
    return {
        name: {image.name: (image.size, image.node_count) for image in images}
        for name, images in zip(snapshot.names, snapshot.images, strict=True)
    }


def test_g4_to_g6_the_first_size_counts_and_node_counts_are_frozen() -> None:
    cache, snapshot = Cache(), Snapshot()
    a = make_node("a", images={"img:1": 100})
    cache.add_node(a)
    snapshot.refresh(cache)
    b = make_node("b", images={"img:1": 200})
    cache.add_node(b)
    assert refreshed(snapshot, cache) == {"a": {"img:1": (100, 1)}, "b": {"img:1": (100, 2)}}
    newer = make_node("a", images={"img:1": 300})
    cache.update_node(a, newer)
    assert refreshed(snapshot, cache) == {"a": {"img:1": (100, 2)}, "b": {"img:1": (100, 2)}}
    cache.remove_node(b)
    assert refreshed(snapshot, cache) == {"a": {"img:1": (100, 2)}}
    cache.update_node(newer, make_node("a", images={"img:1": 400}))
    assert refreshed(snapshot, cache) == {"a": {"img:1": (400, 1)}}


def test_4_4_4_and_5_a_row_is_frozen_again_when_its_node_changes() -> None:
    cache, snapshot = Cache(), Snapshot()
    n1, n2 = make_node("n1", images={"img:1": 1000}), make_node("n2", images={"img:1": 2000})
    cache.add_node(n1)
    cache.add_node(n2)
    assert refreshed(snapshot, cache) == {"n1": {"img:1": (1000, 2)}, "n2": {"img:1": (1000, 2)}}

    image = ContainerImage(names=("img:1", "img:1@sha"), size_bytes=1500)
    n3 = Node(metadata=make_node("n3").metadata, status=NodeStatus(images=(image,)))
    cache.add_node(n3)
    frozen = refreshed(snapshot, cache)
    assert frozen["n1"] == frozen["n2"] == {"img:1": (1000, 2)}
    assert frozen["n3"] == {"img:1": (1000, 3), "img:1@sha": (1500, 1)}

    cache.add_pod(PodInfo(make_pod(node="n1")))
    frozen = refreshed(snapshot, cache)
    assert frozen["n1"] == {"img:1": (1000, 3)}
    assert frozen["n2"] == {"img:1": (1000, 2)}

    cache.remove_node(n1)
    cache.remove_node(n2)
    cache.update_node(n3, make_node("n3", images={"img:1": 1700}))
    assert refreshed(snapshot, cache) == {"n3": {"img:1": (1700, 1)}}


def test_a_record_lives_as_long_as_a_node_has_the_image() -> None:
    states = ImageStates()
    a, b = make_node("a", images={"img": 1}), make_node("b", images={"img": 2})
    states.register(a)
    states.register(b)
    states.unregister(a)
    assert "img" in states
    states.unregister(a)  # nothing left to take away
    assert "img" in states
    states.unregister(b)
    assert "img" not in states


def test_the_version_moves_only_with_the_records() -> None:
    states = ImageStates()
    states.register(make_node("bare"))
    states.unregister(make_node("bare"))
    assert states.version == 0
    states.register(make_node("a", images={"img": 1}))
    assert states.version > 0


def test_the_images_of_a_ghost_are_uncounted_once() -> None:
    cache, snapshot = Cache(), Snapshot()
    n1, n2 = make_node("n1", images={"img": 1}), make_node("n2", images={"img": 2})
    cache.add_node(n1)
    cache.add_node(n2)
    cache.add_pod(PodInfo(make_pod(node="n1")))
    cache.remove_node(n1)
    cache.add_node(n1)  # added again; the cached object was already uncounted
    assert refreshed(snapshot, cache) == {"n2": {"img": (1, 2)}, "n1": {"img": (1, 2)}}


def test_a_node_added_again_without_images_has_none() -> None:
    # The deletion no longer named the image, so its record stays, and nothing else changes it.
    cache, snapshot = Cache(), Snapshot()
    cache.add_node(make_node("n1", images={"img": 1}))
    snapshot.refresh(cache)
    cache.remove_node(make_node("n1"))
    cache.add_node(make_node("n1"))
    assert refreshed(snapshot, cache) == {"n1": {}}


def test_rows_copied_while_nothing_changed_share_the_numbers() -> None:
    cache, snapshot = Cache(), Snapshot()
    for name in ("n1", "n2"):
        cache.add_node(make_node(name, images={"img": 1}))
    snapshot.refresh(cache)
    assert snapshot.images[0][0] is snapshot.images[1][0]
