"""The FIFO of v1.9 agrees with a slow reading of spec 02 §19.2: a map, and a list of keys."""

from hypothesis import given
from hypothesis import strategies as st

from kubestow.editions.v1_9.queue.fifo import Fifo
from kubestow.testing import make_pod

NAMES = ("a", "b", "c")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("add", "add_if_not_present", "delete", "pop")), st.sampled_from(NAMES)
    ),
    max_size=40,
)


@given(STEPS)
def test_the_fifo_agrees_with_the_reading(steps: list[tuple[str, str]]) -> None:
    fifo = Fifo()
    pods: dict[str, int] = {}
    keys: list[str] = []
    for version, (operation, name) in enumerate(steps):
        pod = make_pod(name, annotations={"version": str(version)})
        if operation == "pop":
            popped = fifo.pop_nowait()
            expected = None
            while keys and expected is None:
                key = keys.pop(0)
                expected = (key, pods.pop(key)) if key in pods else None
            found = None
            if popped is not None:
                found = (popped.metadata.name, int(popped.metadata.annotations["version"]))
            assert found == expected
        elif operation == "delete":
            fifo.delete(pod)
            pods.pop(name, None)
        elif operation == "add" or name not in pods:
            (fifo.add if operation == "add" else fifo.add_if_not_present)(pod)
            if name not in pods:
                keys.append(name)
            pods[name] = version
        else:
            fifo.add_if_not_present(pod)
        assert len(fifo) == len(pods)
