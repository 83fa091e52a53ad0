"""Spec 05 §10: nodes that have the pod's images score by their size."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.pod import ImageVolume, Pod, Volume
from kubestow.cache.cache import Cache
from kubestow.cache.snapshot import Snapshot
from kubestow.index.nodes import nodes_of
from kubestow.plugins.image_locality import ImageLocality, pod_images
from kubestow.testing import (
    make_container,
    make_handle,
    make_node,
    make_pod,
    make_snapshot,
    run_score,
)

MB = 1024 * 1024


@pytest.fixture
def plugin() -> ImageLocality:
    return ImageLocality(None, make_handle())


def running(*images: str, init: tuple[str, ...] = (), volumes: tuple[str, ...] = ()) -> Pod:
    return make_pod(
        containers=[make_container(f"c{i}", image=image) for i, image in enumerate(images)],
        init_containers=[make_container(f"i{i}", image=image) for i, image in enumerate(init)],
        volumes=[
            Volume(name=f"v{i}", image=ImageVolume(reference=v)) for i, v in enumerate(volumes)
        ],
    )


@pytest.mark.parametrize(
    ("pod", "images", "expected"),
    [
        pytest.param(
            running("a:1", "b:1"),
            [{"a:1": 600 * MB, "b:1": 200 * MB}, *[{"b:1": 200 * MB}] * 3],
            [16, 8, 8, 8],
            id="1-two-images",
        ),
        pytest.param(
            running("a:1"), [{"a:1": 250 * MB}] * 2 + [{}] * 2, [10, 10, 0, 0], id="2-half"
        ),
        pytest.param(running("a:1"), [{"a:1": 40 * MB}, {}], [0, 0], id="3-below-the-minimum"),
        pytest.param(running("a:1"), [{"a:1": 23 * MB}], [0], id="3-exactly-the-minimum"),
        pytest.param(running("a:1"), [{"a:1": 24 * MB}], [0], id="3-just-above"),
        pytest.param(running("a:1"), [{"a:1": 33 * MB}], [1], id="3-one"),
        pytest.param(running("a:1"), [{"a:1": 5000 * MB}] * 3, [100, 100, 100], id="4-clamped"),
        pytest.param(running("a:1"), [{"a:1": 1_000_000_000}, {}, {}], [30, 0, 0], id="5-cut"),
        pytest.param(
            running("a:1"), [{"a:1": 103_085_507}, {}, {}], [0, 0, 0], id="5-cut-before-the-score"
        ),
        pytest.param(
            running("a:1", volumes=("v:1",)),
            [{"a:1": 300 * MB, "v:1": 900 * MB}],
            [100],
            id="6-volumes-count-in-the-sum-only",
        ),
        pytest.param(
            running("a:1", init=("a:1",)), [{"a:1": 500 * MB}], [49], id="7-twice-counts-twice"
        ),
        pytest.param(running("a"), [{"a:latest": 500 * MB}, {"a": 500 * MB}], [23, 0], id="latest"),
        pytest.param(running("a:1"), [{}, {}], [0, 0], id="no-node-has-it"),
    ],
)
def test_sizes_become_scores(
    plugin: ImageLocality, pod: Pod, images: list[dict[str, int]], expected: list[int]
) -> None:
    nodes = [make_node(f"n{number}", images=each) for number, each in enumerate(images)]
    assert run_score(plugin, pod, make_snapshot(nodes)) == expected


def test_all_nodes_of_the_cluster_count_not_only_those_scored(plugin: ImageLocality) -> None:
    nodes = [make_node(f"n{number}", images={"a:1": 500 * MB}) for number in range(2)]
    snapshot = make_snapshot([*nodes, make_node("n2"), make_node("n3")])
    view = nodes_of(snapshot, np.array([1, 3]))
    assert run_score(plugin, running("a:1"), view) == [100 * (250 - 23) // 977, 0]


def test_a_row_keeps_the_count_of_its_own_last_copy(plugin: ImageLocality) -> None:
    # Spec 01 §10 G4 to G6: other nodes gaining or losing an image do not touch the row.
    cache, snapshot = Cache(), Snapshot()
    pod = running("img:1")

    def scores_after(total: int, *pairs: tuple[int, int]) -> None:
        snapshot.refresh(cache)
        expected = [_score(int(size * (count / total))) for size, count in pairs]
        assert run_score(plugin, pod, snapshot) == expected

    first = cache.add_node(make_node("a", images={"img:1": 100 * MB})).node
    scores_after(1, (100 * MB, 1))
    second = cache.add_node(make_node("b", images={"img:1": 200 * MB})).node
    scores_after(2, (100 * MB, 1), (100 * MB, 2))
    first = cache.update_node(first, make_node("a", images={"img:1": 300 * MB})).node
    scores_after(2, (100 * MB, 2), (100 * MB, 2))
    assert second is not None
    cache.remove_node(second)
    scores_after(1, (100 * MB, 2))
    cache.update_node(first, make_node("a", images={"img:1": 400 * MB}))
    scores_after(1, (400 * MB, 1))


def test_a_pod_without_containers_has_an_answer_too(plugin: ImageLocality) -> None:
    nodes = [make_node("n0", images={"v:1": 900 * MB}), make_node("n1")]
    assert run_score(plugin, running(volumes=("v:1",)), make_snapshot(nodes)) == [100, 0]


names = st.sampled_from(["a:1", "b:1", "c:latest", "c"])
image_maps = st.dictionaries(names, st.integers(0, 2000 * MB), max_size=3)


@pytest.mark.parametrize("by_themselves_max", [16, 0], ids=["each", "all-together"])
@given(
    images=st.lists(image_maps, min_size=1, max_size=6),
    changes=st.lists(st.tuples(st.integers(0, 5), image_maps), max_size=3),
    containers=st.lists(names, min_size=1, max_size=3),
    volumes=st.lists(names, max_size=2),
)
def test_arrays_equal_the_scalar_reading(
    by_themselves_max: int,
    images: list[dict[str, int]],
    changes: list[tuple[int, dict[str, int]]],
    containers: list[str],
    volumes: list[str],
) -> None:
    plugin = ImageLocality(None, make_handle())
    pod = running(*containers, volumes=tuple(volumes))
    cache, snapshot = Cache(), Snapshot()
    for number, each in enumerate(images):
        cache.add_node(make_node(f"n{number}", images=each))
    for number, each in [(-1, {}), *changes]:
        name = f"n{number}"
        if 0 <= number < len(images):
            cache.update_node(cache.node(name).node, make_node(name, images=each))
        snapshot.refresh(cache)
        expected: list[int] = []
        for images_of_node in snapshot.images:
            frozen = {each.name: (each.size, each.node_count) for each in images_of_node}
            total = 0
            for image in pod_images(pod):
                size, count = frozen.get(image, (0, 0))
                total += int(float(size) * (float(count) / float(len(snapshot))))
            expected.append(_score(total, container_count=len(containers)))
        with patch("kubestow.plugins.image_locality.IMAGES_BY_THEMSELVES_MAX", by_themselves_max):
            assert run_score(plugin, pod, snapshot) == expected


def _score(total: int, container_count: int = 1) -> int:
    smallest, largest = 23 * MB, container_count * 1000 * MB
    return 100 * (min(max(total, smallest), largest) - smallest) // (largest - smallest)
