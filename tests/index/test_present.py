"""Label keys are counted, and images found, as if all nodes were read again."""

from collections.abc import Sized
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kubestow.arrays import ALL_ROWS, pick
from kubestow.cache.cache import Cache
from kubestow.cache.snapshot import Snapshot
from kubestow.index.image_rows import CHANGED_MAX, ImageColumn, ImageRows
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
        label_keys = snapshot.derived(LabelKeys)
        assert label_keys.present() == expected
        with patch("kubestow.index.present._FEW_ROWS", 2):
            for key in ("a", "b", "c", "d"):
                rows_with = [
                    row for row, node in enumerate(snapshot.nodes) if key in node.metadata.labels
                ]
                assert label_keys.few_rows(key) == (rows_with if len(rows_with) <= 2 else None)
        image_rows = snapshot.derived(ImageRows)
        for image in ("a", "b", "c"):
            expected_sizes = [
                [(state.size, state.node_count) for state in images if state.name == image]
                for images in snapshot.images
            ]
            for rows in (ALL_ROWS, slice(1, 3), np.arange(len(snapshot))):
                expected_part = pick(expected_sizes, rows)
                column = image_rows.column(image, rows)
                assert numbers_of(column, expected_part) == expected_part


def numbers_of(column: ImageColumn | None, nodes: Sized) -> list[list[tuple[int, int]]]:
    """Per node: size and node count of the image, if it is there."""
    if column is None:
        return [[] for _ in range(len(nodes))]
    found = zip(column.sizes.tolist(), column.node_counts.tolist(), strict=True)
    numbers = [[], *([pair] for pair in list(found)[1:])]
    return [numbers[place] for place in column.ids.tolist()]


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
        new, old = image_rows.column("new", ALL_ROWS), image_rows.column("old", ALL_ROWS)
        assert sum(map(len, numbers_of(new, nodes))) == number + 1
        assert sum(map(len, numbers_of(old, nodes))) == len(nodes) - number - 1
    assert len(image_rows._changed) <= CHANGED_MAX
