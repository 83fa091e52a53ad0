"""Which pods were promised which node (spec 02 §11)."""

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.queue.nominator import Nominator
from kubestow.testing.builders import make_pod


class Promises:
    """A nominator over pods known by name; `waiting` is what the queue holds."""

    def __init__(self) -> None:
        self.known: dict[str, Pod] = {}
        self.waiting: dict[str, PodInfo] = {}
        self.nominator = Nominator(
            find=self.waiting.get, pod_lister=lambda _, name: self.known.get(name)
        )

    def pod(self, name: str, nominated: str = "", *, node: str = "") -> Pod:
        """A version of the pod; the API server knows it."""
        pod = make_pod(name, uid=name, nominated_node=nominated, node=node)
        self.known[name] = pod
        return pod

    def nodes(self) -> dict[str, str]:
        return {
            node: " ".join(info.name for info in self.nominator.nominated_pods_for_node(node))
            for node in self.nominator.nominated_nodes()
        }


def test_the_status_counts_without_an_override() -> None:  # Q11-1
    promises = Promises()
    promises.nominator.add(promises.pod("p", "n1"))
    promises.nominator.add(promises.pod("q"))
    assert promises.nodes() == {"n1": "p"}
    assert len(promises.nominator) == 1


def test_an_override_replaces_the_old_entry() -> None:  # Q11-2
    promises = Promises()
    pod = promises.pod("p", "n1")
    promises.nominator.add(pod)
    promises.nominator.add(pod, override="n2")
    assert promises.nodes() == {"n2": "p"}


def test_an_update_that_says_nothing_keeps_the_nomination() -> None:  # Q11-3
    promises = Promises()
    promises.nominator.add(promises.pod("p"), override="n2")
    promises.nominator.update(promises.pod("p"), promises.pod("p"))
    assert promises.nodes() == {"n2": "p"}


def test_an_update_that_drops_the_nomination_removes_it() -> None:  # Q11-4
    promises = Promises()
    promises.nominator.add(promises.pod("p"), override="n2")
    promises.nominator.update(promises.pod("p", "n2"), promises.pod("p"))
    assert promises.nodes() == {}


def test_an_update_to_another_node_moves_the_nomination() -> None:
    promises = Promises()
    promises.nominator.add(promises.pod("p"), override="n2")
    promises.nominator.update(promises.pod("p"), promises.pod("p", "n3"))
    assert promises.nodes() == {"n3": "p"}


def test_pods_that_are_gone_or_bound_get_none() -> None:  # Q11-5
    promises = Promises()
    promises.nominator.add(make_pod("gone"), override="n2")
    pod = promises.pod("bound", "n2")
    promises.pod("bound", "n2", node="n2")
    promises.nominator.add(pod)
    assert promises.nodes() == {}


def test_an_empty_override_clears_and_is_remembered() -> None:  # Q11-6
    promises = Promises()
    promises.nominator.add(promises.pod("p"), override="n2")
    promises.nominator.add(promises.pod("p"), override="")
    assert promises.nodes() == {"": "p"}
    promises.nominator.update(promises.pod("p"), promises.pod("p"))
    assert promises.nodes() == {"": "p"}


def test_an_updated_pod_goes_to_the_end_of_its_node() -> None:  # Q11-7
    promises = Promises()
    old = promises.pod("p", "n2")
    promises.nominator.add(old)
    promises.nominator.add(promises.pod("q", "n2"))
    promises.nominator.update(old, promises.pod("p", "n2"))
    assert promises.nodes() == {"n2": "q p"}


def test_deleting_the_last_pod_drops_the_node() -> None:
    promises = Promises()
    pod = promises.pod("p", "n1")
    promises.nominator.add(pod)
    promises.nominator.delete(pod)
    promises.nominator.delete(pod)
    assert promises.nodes() == {}
    assert promises.nominator.nominated_pods_for_node("n1") == ()


def test_a_waiting_pod_is_given_as_the_queue_holds_it_others_as_stubs() -> None:
    promises = Promises()
    pod = make_pod("p", uid="p", priority=7, cpu="2", nominated_node="n1")
    promises.known["p"] = pod
    info = promises.waiting["default/p"] = PodInfo(pod)
    promises.nominator.add(pod)
    assert promises.nominator.nominated_pods_for_node("n1") == [info]

    del promises.waiting["default/p"]
    (stub,) = promises.nominator.nominated_pods_for_node("n1")
    assert (stub.key, stub.uid, stub.priority) == ("default/p", "p", 0)
    assert stub.accounted.requested.milli_cpu == 0
