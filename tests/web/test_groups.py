"""Groups of pods as the page shows them."""

import msgspec
from tests.web.followed_cluster import followed_cluster

from kubestow.api.decode import convert
from kubestow.api.pod import Pod, PodSchedulingGroup
from kubestow.api.pod_group import PodGroup
from kubestow.cache.groups import Groups
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing import make_node, make_pod
from kubestow.web.groups import find_group, find_groups


def member(name: str, group: str, node: str = "") -> Pod:
    pod = make_pod(name, cpu="1", node=node)
    part = PodSchedulingGroup(pod_group_name=group)
    return msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, scheduling_group=part)
    )


def test_groups_that_wait_come_first_with_their_members() -> None:
    async def main() -> None:
        async with followed_cluster(make_node("n", cpu="4")) as cluster:
            await cluster.follower.start()
            assert find_groups(cluster.follower).count == 0
            objects = cluster.scheduler.objects
            groups = cluster.scheduler.cache.groups = Groups(objects.pod_groups)
            spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
            metadata = {"name": "waits", "namespace": "default"}
            objects.pod_groups.put(convert(PodGroup, {"metadata": metadata, "spec": spec}))
            for pod in (member("a", "waits", "n"), member("b", "waits"), member("c", "free", "n")):
                groups.add(pod)
            found = find_groups(cluster.follower)
            assert [(row.name, row.placed, row.members) for row in found.groups] == [
                ("waits", 1, 2),
                ("free", 1, 1),
            ]
            assert [(row.min_count, row.exists) for row in found.groups] == [
                (2, True),
                (None, False),
            ]
            group = find_group(cluster.follower, "default", "waits")
            assert group is not None
            assert [row.key for row in group.pods] == ["default/a", "default/b"]
            assert find_group(cluster.follower, "default", "none") is None

    run_in_virtual_time(main())
