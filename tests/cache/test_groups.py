"""Rules and members of groups, beside the worked examples."""

from datetime import UTC, datetime

from kubestow.api.group import AS_UPSTREAM, GangOptions, GroupKey
from kubestow.api.pod import assign
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


def test_a_member_that_another_process_bound_is_not_unscheduled() -> None:
    groups = Groups(ObjectStore[PodGroup]())
    pod = make_pod("a", group="g")
    groups.add(pod)
    groups.start_trying(KEY, [pod.metadata.uid])
    groups.add(assign(pod, "n1"))
    members = groups.members(KEY)
    assert (members.unscheduled, members.tried) == ({}, set())
    assert members.scheduled_count == 1


def min_count(groups: Groups) -> int | None:
    rules = groups.rules(KEY)
    assert rules is not None
    return rules.min_count


def test_finished_members_count_until_they_are_deleted() -> None:
    store = ObjectStore[PodGroup]()
    store.put(make_pod_group("g", min_count=2))
    groups = Groups(store)
    pods = [make_pod(name, node="n", phase="Succeeded", group="g") for name in ("a", "b", "c")]
    groups.add(pods[0])
    groups.finish(pods[0])
    # It still counts as placed, so it must not count twice.
    assert min_count(groups) == 2
    groups.remove(pods[0])
    assert min_count(groups) == 1
    for pod in pods:
        groups.finish(pod)
    assert min_count(groups) == 0
    for pod in pods:
        groups.forget_finished(pod)
        groups.forget_finished(pod)
    assert min_count(groups) == 2
    assert groups.finished_count(KEY) == 0


def test_members_that_leave_are_not_counted_as_staying() -> None:
    groups = Groups(ObjectStore[PodGroup]())
    pods = [make_pod(name, node="n", group="g") for name in ("a", "b")]
    terminating = make_pod("c", node="n", group="g", deleted=datetime(2026, 1, 1, tzinfo=UTC))
    for pod in (*pods, terminating, make_pod("d", group="g")):
        groups.add(pod)
    members = groups.members(KEY)
    assert (members.scheduled_count, members.staying_count) == (3, 2)
    groups.start_leaving(pods[:1])
    assert members.staying_count == 1
    # The eviction writes a condition first, which is an update of the pod.
    groups.remove(pods[0])
    groups.add(pods[0])
    assert groups.is_leaving(pods[0])
    # It failed, or the deletion is not known yet: the pod itself decides from now on.
    groups.stop_leaving(pods[:1])
    assert members.staying_count == 2
    assert groups.is_leaving(terminating)


def test_pod_sets_name_each_other() -> None:
    store = ObjectStore[PodGroup]()
    groups = Groups(store)
    groups.configure(GangOptions(joins_pod_sets=True))
    names = {"kubestow.io/pod-sets": " h , g,, "}
    store.put(make_pod_group("g", min_count=2, annotations=names))
    together = (KEY, GroupKey("default", "h"))
    assert groups.pod_sets(KEY) == together
    # The other one does not exist yet, so at least one of its members is missing.
    assert groups.missing_count(KEY) == 3
    groups.configure(AS_UPSTREAM)
    store.put(make_pod_group("g", min_count=2, annotations=names))
    assert groups.pod_sets(KEY) == (KEY,)


def test_a_pod_of_its_own_is_no_member() -> None:
    groups = Groups(ObjectStore[PodGroup]())
    pod = make_pod("alone")
    groups.add(pod)
    groups.assume(pod)
    groups.forget(pod)
    groups.update(pod, pod)
    groups.remove(pod)
    assert len(groups) == 0
