"""Label keys are counted, and images found, as if all nodes were read again."""

from hypothesis import given
from hypothesis import strategies as st

from kubestow.cache.cache import Cache
from kubestow.cache.snapshot import Snapshot
from kubestow.index.image_rows import CHANGED_MAX, ImageRows
from kubestow.index.present import LabelKeys
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
        image_rows = snapshot.derived(ImageRows)
        for image in ("a", "b", "c"):
            rows = [row for row, images in enumerate(snapshot.images) if image in images]
            assert sorted(image_rows.rows_with(image)) == rows
            assert image_rows.may_have(image) or not rows


def test_after_many_changes_all_images_are_read_again() -> None:
    cache, snapshot = Cache(), Snapshot()
    nodes = [make_node(f"n{number}", images={"old": 5}) for number in range(2 * CHANGED_MAX)]
    for node in nodes:
        cache.add_node(node)
    snapshot.refresh(cache)
    image_rows = snapshot.derived(ImageRows)
    for number, node in enumerate(nodes):
        cache.update_node(node, make_node(node.metadata.name, images={"new": 5}))
        snapshot.refresh(cache)
        assert len(image_rows.rows_with("new")) == number + 1
        assert len(image_rows.rows_with("old")) == len(nodes) - number - 1
    assert image_rows.may_have("new")
    assert len(image_rows._changed) <= CHANGED_MAX
