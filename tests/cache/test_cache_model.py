"""The cache under any sequence of operations equals two dictionaries and a few lists."""

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.cache.priorities import NO_PODS
from kubestow.errors import CacheCorruptedError, CacheError
from kubestow.testing import make_node, make_pod

UIDS = st.sampled_from(["u1", "u2", "u3", "u4"])
NODES = st.sampled_from(["n1", "n2", "n3"])
CPUS = st.integers(0, 3)


class CacheMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.pods: dict[str, Pod] = {}  # by UID, as cached
        self.assumed: set[str] = set()
        self.on_node: dict[str, list[str]] = {}  # node → UIDs in the order the node keeps them
        self.nodes: dict[str, Node] = {}  # those with a Node object
        self.tree: list[str] = []

    # --- the model's own moves ---

    def put(self, pod: Pod) -> None:
        self.pods[pod.metadata.uid] = pod
        self.on_node.setdefault(pod.spec.node_name, []).append(pod.metadata.uid)

    def take(self, uid: str) -> None:
        place = self.on_node[self.pods.pop(uid).spec.node_name]
        self.assumed.discard(uid)
        index = place.index(uid)
        place[index] = place[-1]
        place.pop()

    def attempt(self, call: Callable[[], None], refused: bool) -> bool:
        """Run the operation; it must be refused exactly when the model refuses it."""
        try:
            call()
        except CacheCorruptedError:
            raise
        except CacheError:
            assert refused
            return False
        assert not refused
        return True

    # --- pods ---

    @rule(uid=UIDS, node=NODES, cpu=CPUS)
    def assume(self, uid: str, node: str, cpu: int) -> None:
        pod = make_pod(uid, uid=uid, node=node, cpu=cpu, priority=int(uid[1:]))
        if self.attempt(lambda: self.cache.assume_pod(PodInfo(pod)), uid in self.pods):
            self.put(pod)
            self.assumed.add(uid)

    @rule(uid=UIDS, node=NODES)
    def forget(self, uid: str, node: str) -> None:
        pod = make_pod(uid, uid=uid, node=node)
        known = self.pods.get(uid)
        refused = known is not None and (known.spec.node_name != node or uid not in self.assumed)
        if self.attempt(lambda: self.cache.forget_pod(pod), refused) and known is not None:
            self.take(uid)

    @rule(uid=UIDS, node=NODES, cpu=CPUS)
    def add(self, uid: str, node: str, cpu: int) -> None:
        pod = make_pod(uid, uid=uid, node=node, cpu=cpu, priority=int(uid[1:]))
        refused = uid in self.pods and uid not in self.assumed
        if self.attempt(lambda: self.cache.add_pod(PodInfo(pod)), refused):
            if uid in self.pods:
                self.take(uid)
            self.put(pod)

    @rule(uid=UIDS, cpu=CPUS, successor=st.none() | UIDS)
    def update(self, uid: str, cpu: int, successor: str | None) -> None:
        known = self.pods.get(uid)
        node = known.spec.node_name if known is not None else "n1"
        if successor is None or successor in self.pods:
            successor = uid
        new = make_pod(uid, uid=successor, node=node, cpu=cpu)
        old = make_pod(uid, uid=uid, node=node)
        refused = known is None or uid in self.assumed
        if self.attempt(lambda: self.cache.update_pod(old, PodInfo(new)), refused):
            self.take(uid)
            self.put(new)

    @rule(uid=UIDS, stale=st.booleans())
    def remove(self, uid: str, stale: bool) -> None:
        known = self.pods.get(uid)
        node = "" if stale or known is None else known.spec.node_name
        pod = make_pod(uid, uid=uid, node=node)
        if self.attempt(lambda: self.cache.remove_pod(pod), known is None):
            self.take(uid)

    # --- nodes ---

    @rule(name=NODES, cpu=CPUS)
    def add_node(self, name: str, cpu: int) -> None:
        self.nodes[name] = make_node(name, cpu=cpu)
        self.cache.add_node(self.nodes[name])
        if name not in self.tree:
            self.tree.append(name)

    @rule(name=NODES, cpu=CPUS)
    def update_node(self, name: str, cpu: int) -> None:
        node = make_node(name, cpu=cpu)
        # A ghost that is updated stays out of the order (spec 03 §4.1).
        if name not in self.nodes and not self.on_node.get(name):
            self.tree.append(name)
        self.nodes[name] = node
        self.cache.update_node(node, node)

    @rule(name=NODES)
    def remove_node(self, name: str) -> None:
        is_known = name in self.nodes or bool(self.on_node.get(name))
        refused = not is_known or name not in self.tree
        self.attempt(lambda: self.cache.remove_node(make_node(name)), refused)
        self.nodes.pop(name, None)
        if name in self.tree:
            self.tree.remove(name)

    # --- everything agrees ---

    @invariant()
    def pods_are_where_the_model_says(self) -> None:
        for name, uids in self.on_node.items():
            info = self.cache.nodes.get(name)
            assert [pod.uid for pod in info.pods] == uids if info is not None else not uids
        on_nodes = sum(len(info.pods) for info in self.cache.nodes.values())
        assert on_nodes == len(self.pods) == self.cache.statistics().pods
        assert self.cache.dump().assumed_pods == self.assumed
        for uid, pod in self.pods.items():
            assert self.cache.pod(pod).pod is pod
            assert self.cache.is_assumed(pod) == (uid in self.assumed)

    @invariant()
    def sums_are_those_of_the_pods(self) -> None:
        for info in self.cache.nodes.values():
            requests = [pod.accounted.requested.milli_cpu for pod in info.pods]
            assert info.requested.milli_cpu == sum(requests)
            assert sum(info.class_counts.values()) == len(info.pods)

    @invariant()
    def no_priority_is_lower_than_the_lowest(self) -> None:
        priorities = [PodInfo(pod).priority for pod in self.pods.values()]
        assert self.cache.priorities.lowest == min(priorities, default=NO_PODS)

    @invariant()
    def nodes_are_what_the_model_says(self) -> None:
        occupied = {name for name, uids in self.on_node.items() if uids}
        assert self.cache.nodes.keys() == self.nodes.keys() | occupied
        for name, info in self.cache.nodes.items():
            assert info.node is self.nodes.get(name)
        assert self.cache.node_tree.list() == self.tree
        assert self.cache.node_tree.node_count == len(self.tree)

    @invariant()
    def generations_fall_from_the_most_recent_entry(self) -> None:
        generations = [info.generation for info in self.cache.nodes.values()]
        assert generations == sorted(set(generations))


CacheMachine.TestCase.settings = settings(stateful_step_count=40)
TestCacheMachine = CacheMachine.TestCase
