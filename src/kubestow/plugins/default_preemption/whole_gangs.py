"""Keeps gangs of victims whole, by choice: all members of a gang are evicted, or none.

Upstream evicts single members and leaves the rest running, though they cannot work without them
(spec 11 §9.4). Members beyond the minimum can be evicted by themselves.
"""

from collections.abc import Container, Sequence
from typing import NamedTuple

import numpy as np

from kubestow.api.group import GroupKey
from kubestow.api.pod_info import PodInfo
from kubestow.cache.groups import Groups
from kubestow.plugins.default_preemption.candidates import Candidate, Candidates


class Chosen(NamedTuple):
    """The best candidate, and all pods to evict: its own victims and the rest of their gangs."""

    candidate: Candidate
    victims: Sequence[PodInfo]


def choose(candidates: Candidates, groups: Groups, priority: int) -> Chosen | None:
    """The best candidate among those that cost the fewest pods of other nodes; None if each of
    them would break a gang with a pod that the preemptor must not evict."""
    victims = [
        with_gangs(candidates[position].victims, groups, priority)
        for position in range(len(candidates))
    ]
    extra = {
        position: len(all_victims) - len(candidates[position].victims)
        for position, all_victims in enumerate(victims)
        if all_victims is not None
    }
    if not extra:
        return None
    fewest = min(extra.values())
    positions = np.array([position for position in extra if extra[position] == fewest], np.intp)
    first = candidates.subset(positions).first_of_best()
    assert first is not None
    best = int(positions[first])
    chosen = victims[best]
    assert chosen is not None, best
    return Chosen(candidates[best], chosen)


def with_gangs(
    victims: Sequence[PodInfo], groups: Groups, priority: int
) -> Sequence[PodInfo] | None:
    """The victims and the rest of every gang that would be left with too few members.

    None if a pod among them is not less important than a preemptor of that priority.
    """
    found = {pod.uid: pod for pod in victims}
    for key in {groups.key_of(pod.pod) for pod in victims} - {None}:
        assert key is not None
        if not _is_broken(groups, key, found):
            continue
        for pod_set in groups.pod_sets(key):
            members = groups.find(pod_set)
            for pod in () if members is None else members.scheduled_pods():
                found.setdefault(pod.metadata.uid, PodInfo(pod))
    if any(pod.priority >= priority for pod in found.values()):
        return None
    return tuple(found.values())


def _is_broken(groups: Groups, key: GroupKey, victims: Container[str]) -> bool:
    """Whether too few members are left without these, by UID."""
    rules, members = groups.rules(key), groups.find(key)
    if rules is None or members is None or rules.min_count is None:
        return False
    staying = [
        pod
        for pod in members.scheduled_pods()
        if pod.metadata.uid not in victims and not groups.is_leaving(pod)
    ]
    return len(staying) < rules.min_count
