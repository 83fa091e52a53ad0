"""Rules and members of groups, beside the worked examples."""

from kubestow.api.group import GroupKey
from kubestow.api.pod_group import PodGroup
from kubestow.cache.groups import Groups
from kubestow.cache.objects import ObjectStore
from kubestow.testing import make_pod, make_pod_group

KEY = GroupKey("default", "g")


def test_rules_follow_the_object() -> None:
    store = ObjectStore[PodGroup]()
    groups = Groups(store)
    assert groups.rules(KEY) is None
    store.put(make_pod_group("g", min_count=2))
    first = groups.rules(KEY)
    assert first is not None
    assert first.min_count == 2
    assert groups.rules(KEY) is first
    store.put(make_pod_group("g", min_count=3))
    changed = groups.rules(KEY)
    assert changed is not None
    assert changed.min_count == 3
    store.remove("default", "g")
    assert groups.rules(KEY) is None


def test_members_that_the_cycle_tries_are_not_idle() -> None:
    groups = Groups(ObjectStore[PodGroup]())
    pods = [make_pod(name, group="g") for name in ("a", "b", "c")]
    for pod in pods:
        groups.add(pod)
    groups.start_trying(KEY, [pods[0].metadata.uid, pods[1].metadata.uid])
    members = groups.members(KEY)
    assert members.idle_pods() == [pods[2]]
    groups.stop_trying(pods[0])
    assert members.idle_pods() == [pods[0], pods[2]]
    groups.remove(pods[2])
    groups.start_trying(KEY, [pod.metadata.uid for pod in pods[:2]])
    assert members.idle_pods() == []


def test_a_pod_of_its_own_is_no_member() -> None:
    groups = Groups(ObjectStore[PodGroup]())
    pod = make_pod("alone")
    groups.add(pod)
    groups.assume(pod)
    groups.forget(pod)
    groups.update(pod, pod)
    groups.remove(pod)
    assert len(groups) == 0
