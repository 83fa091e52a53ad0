"""Which pods are nominated to which node (spec 02 §11)."""

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.queue.nominator import Nominator
from kubestow.testing.builders import make_pod


class Nominations:
    """A nominator over pods known by name; `waiting` is what the queue holds."""

    def __init__(self) -> None:
        self.known: dict[str, Pod] = {}
        self.waiting: dict[str, PodInfo] = {}
        self.nominator = Nominator(
            find=self.waiting.get, pod_lister=lambda _, name: self.known.get(name)
        )

    def pod(self, name: str, nominated: str = "", *, node: str = "") -> Pod:
        """A version of the pod, which the API server has."""
        pod = make_pod(name, uid=name, nominated_node=nominated, node=node)
        self.known[name] = pod
        return pod

    def nodes(self) -> dict[str, str]:
        return {
            node: " ".join(info.name for info in self.nominator.nominated_pods_for_node(node))
            for node in self.nominator.nominated_nodes()
        }


def test_the_status_counts_without_an_override() -> None:  # Q11-1
    nominations = Nominations()
    nominations.nominator.add(nominations.pod("p", "n1"))
    nominations.nominator.add(nominations.pod("q"))
    assert nominations.nodes() == {"n1": "p"}
    assert len(nominations.nominator) == 1


def test_an_override_replaces_the_old_entry() -> None:  # Q11-2
    nominations = Nominations()
    pod = nominations.pod("p", "n1")
    nominations.nominator.add(pod)
    nominations.nominator.add(pod, override="n2")
    assert nominations.nodes() == {"n2": "p"}


def test_an_update_without_a_nomination_keeps_it() -> None:  # Q11-3
    nominations = Nominations()
    nominations.nominator.add(nominations.pod("p"), override="n2")
    nominations.nominator.update(nominations.pod("p"), nominations.pod("p"))
    assert nominations.nodes() == {"n2": "p"}


def test_an_update_that_drops_the_nomination_removes_it() -> None:  # Q11-4
    nominations = Nominations()
    nominations.nominator.add(nominations.pod("p"), override="n2")
    nominations.nominator.update(nominations.pod("p", "n2"), nominations.pod("p"))
    assert nominations.nodes() == {}


def test_an_update_to_another_node_moves_the_nomination() -> None:
    nominations = Nominations()
    nominations.nominator.add(nominations.pod("p"), override="n2")
    nominations.nominator.update(nominations.pod("p"), nominations.pod("p", "n3"))
    assert nominations.nodes() == {"n3": "p"}


def test_pods_that_are_gone_or_bound_get_none() -> None:  # Q11-5
    nominations = Nominations()
    nominations.nominator.add(make_pod("gone"), override="n2")
    pod = nominations.pod("bound", "n2")
    nominations.pod("bound", "n2", node="n2")
    nominations.nominator.add(pod)
    assert nominations.nodes() == {}


def test_an_empty_override_clears_and_is_kept() -> None:  # Q11-6
    nominations = Nominations()
    nominations.nominator.add(nominations.pod("p"), override="n2")
    nominations.nominator.add(nominations.pod("p"), override="")
    assert nominations.nodes() == {"": "p"}
    nominations.nominator.update(nominations.pod("p"), nominations.pod("p"))
    assert nominations.nodes() == {"": "p"}


def test_an_updated_pod_goes_to_the_end_of_its_node() -> None:  # Q11-7
    nominations = Nominations()
    old = nominations.pod("p", "n2")
    nominations.nominator.add(old)
    nominations.nominator.add(nominations.pod("q", "n2"))
    nominations.nominator.update(old, nominations.pod("p", "n2"))
    assert nominations.nodes() == {"n2": "q p"}


def test_deleting_the_last_pod_drops_the_node() -> None:
    nominations = Nominations()
    pod = nominations.pod("p", "n1")
    nominations.nominator.add(pod)
    nominations.nominator.delete(pod)
    nominations.nominator.delete(pod)
    assert nominations.nodes() == {}
    assert nominations.nominator.nominated_pods_for_node("n1") == ()


def test_a_waiting_pod_is_given_as_the_queue_holds_it_others_as_stubs() -> None:
    nominations = Nominations()
    pod = make_pod("p", uid="p", priority=7, cpu="2", nominated_node="n1")
    nominations.known["p"] = pod
    info = nominations.waiting["default/p"] = PodInfo(pod)
    nominations.nominator.add(pod)
    assert nominations.nominator.nominated_pods_for_node("n1") == [info]

    del nominations.waiting["default/p"]
    (stub,) = nominations.nominator.nominated_pods_for_node("n1")
    assert (stub.key, stub.uid, stub.priority) == ("default/p", "p", 0)
    assert stub.accounted.requested.milli_cpu == 0
