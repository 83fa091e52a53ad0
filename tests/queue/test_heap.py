"""The heap keeps the list the specified sift rules give, element for element."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.errors import QueueError
from kubestow.queue.heap import KeyedHeap

# An element is (key, priority, timestamp); more urgent and older ones come first.
Element = tuple[str, int, int]


class Counted:
    """A heap of elements and the number its recorder arrived at."""

    def __init__(self, *elements: Element) -> None:
        self.count = 0
        self.heap: KeyedHeap[Element] = KeyedHeap(
            sort_key=lambda element: (-element[1], element[2]), count_changed=self._changed
        )
        for element in elements:
            self.put(element)

    def _changed(self, delta: int) -> None:
        self.count += delta

    def put(self, element: Element) -> bool:
        return self.heap.add_or_update(element[0], element)

    def keys(self) -> list[str]:
        return [key for key, _, _ in self.heap]

    def pop_all(self) -> list[str]:
        return [self.heap.pop()[0] for _ in range(len(self.heap))]


@pytest.mark.parametrize(
    ("names", "pops"),
    [
        pytest.param("ABCD", "ADCB", id="Q2.4-1-four-equal"),
        pytest.param("ABCDE", "AEDCB", id="Q2.4-1-five-equal"),
        pytest.param("A", "A", id="one"),
        pytest.param("", "", id="none"),
    ],
)
def test_equal_elements_leave_in_the_order_of_the_sift_rules(names: str, pops: str) -> None:
    assert "".join(Counted(*((name, 0, 0) for name in names)).pop_all()) == pops


def test_elements_of_higher_priority_and_older_ones_come_first() -> None:  # Q2.4-2
    counted = Counted(("p1", 10, 5), ("p2", 20, 9), ("p3", 10, 3), ("p4", 20, 7), ("p5", 0, 1))
    assert counted.keys() == ["p4", "p2", "p3", "p1", "p5"]
    assert counted.pop_all() == ["p4", "p2", "p3", "p1", "p5"]


def test_deleting_and_updating_keep_the_rest_in_order() -> None:  # Q2.4-3
    counted = Counted(("a", 5, 1), ("b", 5, 2), ("c", 5, 3), ("d", 1, 0))
    assert counted.heap.delete("b") == ("b", 5, 2)
    assert counted.keys() == ["a", "d", "c"]
    assert not counted.put(("d", 9, 0))
    assert counted.keys() == ["d", "a", "c"]
    assert counted.count == 3
    assert counted.pop_all() == ["d", "a", "c"]
    assert counted.count == 0


def test_unknown_keys_and_an_empty_heap_are_refused() -> None:  # Q2.4-4
    counted = Counted(("a", 5, 1))
    with pytest.raises(QueueError, match=r"^object not found$"):
        counted.heap.delete("zzz")
    assert counted.heap.discard("zzz") is None
    assert counted.count == 1
    assert counted.pop_all() == ["a"]
    with pytest.raises(QueueError, match=r"^heap is empty$"):
        counted.heap.pop()
    assert counted.heap.peek() is None


def test_updating_with_an_equal_element_changes_nothing() -> None:  # Q2.4-5
    counted = Counted(("a", 5, 1), ("b", 5, 1), ("c", 5, 1))
    before = counted.keys()
    assert not counted.put(("b", 5, 1))
    assert counted.keys() == before
    assert (len(counted.heap), counted.count) == (3, 3)


def test_elements_are_found_by_key() -> None:
    counted = Counted(("a", 5, 1), ("b", 7, 1))
    assert "a" in counted.heap
    assert "c" not in counted.heap
    assert counted.heap.get("a") == ("a", 5, 1)
    assert counted.heap.get("c") is None
    assert counted.heap.peek() == ("b", 7, 1)


class Reference:
    """The rules of spec 02 §2.4, swap by swap."""

    def __init__(self) -> None:
        self.list: list[Element] = []

    def less(self, i: int, j: int) -> bool:
        (_, one, since), (_, other, other_since) = self.list[i], self.list[j]
        return one > other or (one == other and since < other_since)

    def swap(self, i: int, j: int) -> None:
        self.list[i], self.list[j] = self.list[j], self.list[i]

    def up(self, j: int) -> None:
        while True:
            i = (j - 1) // 2 if j else 0
            if i == j or not self.less(j, i):
                return
            self.swap(i, j)
            j = i

    def down(self, start: int, n: int) -> bool:
        i = start
        while 2 * i + 1 < n:
            left = child = 2 * i + 1
            if left + 1 < n and self.less(left + 1, left):
                child = left + 1
            if not self.less(child, i):
                break
            self.swap(i, child)
            i = child
        return i != start

    def put(self, element: Element) -> None:
        index = self.index(element[0])
        if index is None:
            self.list.append(element)
            self.up(len(self.list) - 1)
            return
        self.list[index] = element
        if not self.down(index, len(self.list)):
            self.up(index)

    def pop(self) -> Element:
        last = len(self.list) - 1
        self.swap(0, last)
        self.down(0, last)
        return self.list.pop()

    def delete(self, key: str) -> None:
        index, last = self.index(key), len(self.list) - 1
        assert index is not None
        if index != last:
            self.swap(index, last)
            if not self.down(index, last):
                self.up(index)
        self.list.pop()

    def index(self, key: str) -> int | None:
        return next((i for i, element in enumerate(self.list) if element[0] == key), None)


# Few keys and few distinct sort keys, so that updates, deletions and ties are common.
ELEMENTS = st.tuples(st.sampled_from("abcdefghijkl"), st.integers(0, 2), st.integers(0, 2))
OPERATIONS = st.one_of(
    st.tuples(st.just("put"), ELEMENTS),
    st.tuples(st.just("delete"), st.sampled_from("abcdefghijkl")),
    st.tuples(st.just("pop"), st.none()),
)


@given(st.lists(OPERATIONS, max_size=60))
def test_any_operations_give_the_list_of_the_rules(operations: list[tuple[str, object]]) -> None:
    counted, reference = Counted(), Reference()
    for operation, argument in operations:
        if operation == "put":
            counted.put(argument)
            reference.put(argument)
        elif operation == "delete" and argument in counted.heap:
            counted.heap.delete(argument)
            reference.delete(argument)
        elif operation == "pop" and len(counted.heap):
            assert counted.heap.pop() == reference.pop()
        assert list(counted.heap) == reference.list
        assert counted.count == len(reference.list)
        assert all(counted.heap.get(element[0]) == element for element in reference.list)
