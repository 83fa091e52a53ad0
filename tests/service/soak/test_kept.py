"""All containers are found, whatever holds them."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import lru_cache, partial
from weakref import WeakValueDictionary

import pytest

from kubestow.api import pod_info
from kubestow.api.labels import _parse_parts
from kubestow.api.pod_info import PodInfo
from kubestow.service.soak.gauges import Containers, KeptSize, rss_mib
from kubestow.service.soak.kept import VISITED, Size, module_tables, sizes
from kubestow.testing import make_pod


class Holder:
    # As if it were part of the package: others are not visited.
    __module__ = "kubestow.made.up"

    def __init__(self, held: object) -> None:
        self.held = held

    def method(self) -> object:
        return self.held


class Slotted:
    __module__ = "kubestow.made.up"
    __slots__ = ("held", "unset")

    def __init__(self, held: object) -> None:
        self.held = held


class Stranger:
    def __init__(self, held: object) -> None:
        self.held = held


def closure_over(holder: Holder) -> Callable[[], Holder]:
    return lambda: holder


HELD = "made.up.Holder.held"


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        pytest.param(Holder({1: 1, 2: 2}), {HELD: Size(2, 1)}, id="dict"),
        pytest.param(Holder(OrderedDict(a=1)), {HELD: Size(1, 1)}, id="ordered"),
        pytest.param(Holder(deque([1, 2, 3])), {HELD: Size(3, 1)}, id="deque"),
        pytest.param(Holder({1, 2}), {HELD: Size(2, 1)}, id="set"),
        pytest.param(Holder(WeakValueDictionary()), {HELD: Size(0, 1)}, id="weak"),
        pytest.param(Slotted([1]), {"made.up.Slotted.held": Size(1, 1)}, id="slots"),
        pytest.param(Holder((Holder([1]), Holder([2, 3]))), {HELD: Size(3, 2)}, id="in-a-tuple"),
        pytest.param(Holder(closure_over(Holder([1]))), {HELD: Size(1, 1)}, id="in-a-closure"),
        pytest.param(Holder(partial(print, Holder([1]))), {HELD: Size(1, 1)}, id="in-a-partial"),
        pytest.param(Holder(Holder([1]).method), {HELD: Size(1, 1)}, id="in-a-method"),
        pytest.param(Holder([[1, 2]]), {HELD: Size(3, 2)}, id="nested"),
        pytest.param(Stranger([1]), {}, id="of-another-package"),
        pytest.param(make_pod("p", labels={"a": "b"}), {}, id="an-api-object"),
    ],
)
def test_containers_are_found_by_their_holder(root: object, expected: dict[str, Size]) -> None:
    assert sizes([root]) == expected


def test_objects_that_refer_to_each_other_are_counted_once() -> None:
    first = Holder(None)
    first.held = [first, first]
    assert sizes([first, first]) == {HELD: Size(2, 1)}


def test_of_a_large_container_some_entries_are_visited() -> None:
    large = Holder([Slotted([1]) for _ in range(VISITED + 5)])
    assert sizes([large]) == {
        HELD: Size(VISITED + 5, 1),
        "made.up.Slotted.held": Size(VISITED, VISITED),
    }


def test_tables_of_modules_are_found_once() -> None:
    tables = list(module_tables())
    names = [name for name, _ in tables]
    assert len({id(table) for _, table in tables}) == len(tables)
    assert "api.pod_info._CLASSES" in names
    assert "api.labels._parse_parts" in names


def sizes_in_a_loop(containers: Containers) -> dict[str, KeptSize]:
    async def main() -> dict[str, KeptSize]:
        return containers.sizes()

    return asyncio.run(main())


def test_sizes_come_with_their_limits() -> None:
    pod = PodInfo(make_pod("p", labels={"new": "label"}))
    assert pod.pod_class.labels
    root = Holder((Slotted([1, 2]), Slotted([3])))
    found = sizes_in_a_loop(Containers([root], {"made.up.Slotted.held": 5}))
    assert found["made.up.Slotted.held"] == KeptSize(3, 10)
    assert found["api.pod_info._CLASSES"] == KeptSize(len(pod_info._CLASSES))
    assert found["tasks of the event loop"] == KeptSize(1)
    assert found["api.labels._parse_parts"].limit == _parse_parts.cache_info().maxsize


def test_functions_that_remember_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    @lru_cache(maxsize=7)
    def remembers(number: int) -> int:
        return number

    remembers(1)
    remembers.__module__ = pod_info.__name__
    monkeypatch.setattr(pod_info, "remembers", remembers, raising=False)
    assert sizes_in_a_loop(Containers([], {}))["api.pod_info.remembers"] == KeptSize(1, 7)


def test_memory_is_that_of_this_process() -> None:
    assert 10 < rss_mib() < 10_000
