"""What is free but of no use: the answer of minimal requests is that of all of them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kubestow.simulator.scenario.shapes import RequestShapes

RESOURCES = ("cpu", "memory", "gpu")
AMOUNTS = st.dictionaries(st.sampled_from(RESOURCES), st.integers(1, 6))
FREE = st.lists(st.tuples(*[st.integers(0, 6)] * 3, st.integers(0, 2)), min_size=1, max_size=8)


@given(st.lists(AMOUNTS, max_size=12), FREE)
def test_stranded_is_what_no_request_for_it_could_use(
    requests: list[dict[str, int]], free: list[tuple[int, ...]]
) -> None:
    shapes = RequestShapes()
    for request in requests:
        shapes.add(request)
    columns = np.array(free)
    arrays = {name: columns[:, index] for index, name in enumerate(RESOURCES)}
    expected = {
        name: sum(
            node[index]
            for node in free
            if not any(
                name in request
                and node[3] > 0
                and all(node[RESOURCES.index(one)] >= need for one, need in request.items())
                for request in requests
            )
        )
        for index, name in enumerate(RESOURCES)
        if any(name in request for request in requests)
    }
    assert shapes.stranded(arrays, columns[:, 3]) == expected


def test_more_minimal_requests_than_are_kept_are_counted() -> None:
    shapes = RequestShapes(minimal_max=2)
    for number in range(4):
        shapes.add({"cpu": 1 + number, "memory": 4 - number})
    assert shapes.dropped_count == 4
    shapes.add({"cpu": 1, "memory": 1})
    assert shapes.stranded({"cpu": np.array([1]), "memory": np.array([1])}, np.array([1])) == {
        "cpu": 0,
        "memory": 0,
    }
