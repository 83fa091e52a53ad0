"""Names that nodes have are counted as if all nodes were read again."""

from hypothesis import given
from hypothesis import strategies as st

from kubestow.cache.cache import Cache
from kubestow.cache.snapshot import Snapshot
from kubestow.index.present import ImageNames, LabelKeys
from kubestow.testing import make_node

NAMES = [f"n{number}" for number in range(4)]
keys = st.sets(st.sampled_from(["a", "b", "c"]))


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.none() | keys), max_size=12))
def test_keys_and_images_follow_the_nodes(changes: list[tuple[str, set[str] | None]]) -> None:
    cache, snapshot = Cache(), Snapshot()
    for name, wanted in changes:
        old = cache.nodes[name].node if name in cache.nodes else None
        if wanted is None:
            if old is not None:
                cache.remove_node(old)
        else:
            labels, images = dict.fromkeys(wanted, "x"), dict.fromkeys(wanted, 5)
            node = make_node(name, labels=labels, images=images)
            cache.add_node(node) if old is None else cache.update_node(old, node)
        snapshot.refresh(cache)
        expected: dict[str, int] = {}
        for node in snapshot.nodes:
            for key in node.metadata.labels:
                expected[key] = expected.get(key, 0) + 1
        assert snapshot.derived(LabelKeys).present() == expected
        assert set(snapshot.derived(ImageNames).present()) == {
            name for images in snapshot.images for name in images
        }
