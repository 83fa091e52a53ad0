"""The stores plugins read: what they answer, and that they never answer with something stale."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.meta import ApiObject, ObjectMeta
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.storage import CSINode
from kubestow.api.workload import Namespace, Service
from kubestow.cache.objects import ClusterObjects, ObjectStore


def make(cls: type[ApiObject], name: str, namespace: str = "", version: str = "") -> ApiObject:
    return cls(metadata=ObjectMeta(name=name, namespace=namespace, resource_version=version))


def pod(name: str, namespace: str = "default", version: str = "1") -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace=namespace, resource_version=version))


def test_a_namespaced_object_is_found_by_namespace_and_name():
    store = ObjectStore[Pod]()
    web = pod("web", "shop")
    store.put(web)
    assert store.get("shop", "web") is web
    assert store.get("default", "web") is None
    assert store.get("web") is None


def test_an_object_without_namespace_is_found_by_its_name_alone():
    store = ObjectStore[Node]()
    node = Node(metadata=ObjectMeta(name="n1"))
    store.put(node)
    assert store.get("n1") is node
    assert store.get("", "n1") is node
    assert store.get("n2") is None


def test_put_returns_what_it_replaces_and_remove_what_it_took():
    store = ObjectStore[Pod]()
    first, second = pod("web", version="1"), pod("web", version="2")
    assert store.put(first) is None
    assert store.put(second) is first
    assert store.remove("default", "web") is second
    assert store.remove("default", "web") is None
    assert store.remove("elsewhere", "web") is None
    assert len(store) == 0


def test_lists_follow_every_change():
    store = ObjectStore[Pod]()
    store.put(pod("a", "x"))
    store.put(pod("b", "y"))
    assert [p.metadata.name for p in store.list()] == ["a", "b"]
    assert [p.metadata.name for p in store.list_namespace("y")] == ["b"]
    assert store.list_namespace("z") == ()
    store.put(pod("c", "y"))
    store.put(pod("d", "z"))
    store.remove("x", "a")
    assert [p.metadata.name for p in store.list()] == ["b", "c", "d"]
    assert [p.metadata.name for p in store.list_namespace("y")] == ["b", "c"]
    assert [p.metadata.name for p in store.list_namespace("z")] == ["d"]
    assert store.list_namespace("x") == ()


def test_lists_are_kept_until_something_changes():
    store = ObjectStore[Pod]()
    store.put(pod("a", "x"))
    assert store.list() is store.list()
    assert store.list_namespace("x") is store.list_namespace("x")
    in_x = store.list_namespace("x")
    store.put(pod("b", "y"))
    assert store.list_namespace("x") is in_x


def test_no_list_is_kept_of_a_namespace_without_objects():
    store = ObjectStore[Pod]()
    for number in range(3):
        namespace = f"ci-{number}"
        assert store.list_namespace(namespace) == ()
        store.put(pod("a", namespace))
        assert len(store.list_namespace(namespace)) == 1
        store.remove(namespace, "a")
        assert store.list_namespace(namespace) == ()
        assert not store._in_namespace


def test_version_grows_with_every_change_and_only_then():
    store = ObjectStore[Pod]()
    versions = [store.version]
    store.put(pod("a"))
    versions.append(store.version)
    store.put(pod("a", version="2"))
    versions.append(store.version)
    store.remove("default", "a")
    versions.append(store.version)
    assert versions == sorted(set(versions))
    store.remove("default", "a")
    store.list()
    assert store.version == versions[-1]


def test_subscribers_are_called_after_the_store_has_changed():
    store = ObjectStore[Pod]()
    received: list[tuple[Pod | None, Pod | None, Pod | None]] = []
    end = store.subscribe(lambda old, new: received.append((old, new, store.get("default", "a"))))
    first, second = pod("a", version="1"), pod("a", version="2")
    store.put(first)
    store.put(second)
    store.remove("default", "a")
    assert received == [(None, first, first), (first, second, second), (second, None, None)]
    end()
    store.put(first)
    assert len(received) == 3


def test_a_subscriber_may_end_its_subscription_while_it_is_called():
    store = ObjectStore[Pod]()
    received: list[str] = []

    def once(_old: Pod | None, _new: Pod | None) -> None:
        received.append("once")
        end()

    end = store.subscribe(once)
    store.subscribe(lambda _old, _new: received.append("always"))
    store.put(pod("a"))
    store.put(pod("b"))
    assert received == ["once", "always", "always"]


@pytest.mark.parametrize("cls", ClusterObjects().types(), ids=lambda cls: cls.__name__)
def test_every_kind_has_a_store_of_its_own(cls: type[ApiObject]):
    objects = ClusterObjects()
    objects.put(make(cls, "x"))
    assert objects.store(cls).get("x") == make(cls, "x")
    assert objects.statistics().counts == {cls.__name__: 1}


def test_named_stores_and_stores_by_type_are_the_same():
    objects = ClusterObjects()
    assert objects.store(Pod) is objects.pods
    assert objects.store(CSINode) is objects.csi_nodes
    assert objects.store(Service) is objects.services
    assert objects.store(Namespace) is objects.namespaces


names = st.sampled_from(["a", "b", "c"])
namespaces = st.sampled_from(["x", "y"])


@given(st.lists(st.tuples(st.booleans(), namespaces, names)))
def test_any_sequence_of_changes_leaves_what_a_dict_would_hold(
    changes: list[tuple[bool, str, str]],
):
    store = ObjectStore[Pod]()
    model: dict[tuple[str, str], Pod] = {}
    for count, (is_put, namespace, name) in enumerate(changes):
        if is_put:
            new = pod(name, namespace, str(count))
            assert store.put(new) is model.get((namespace, name))
            model[namespace, name] = new
        else:
            assert store.remove(namespace, name) is model.pop((namespace, name), None)
        # Asking after every change would show a cached list that outlived it.
        assert set(map(id, store.list())) == set(map(id, model.values()))
        assert list(store.list_namespace("x")) == [p for (ns, _), p in model.items() if ns == "x"]
    assert len(store) == len(model)
