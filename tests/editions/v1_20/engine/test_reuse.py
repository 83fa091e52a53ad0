"""What is reused between pods decides as plugins that were just made, also for older plugins."""

from typing import Any

import numpy as np
import pytest

from kubestow.api.decode import convert
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.config.feature_gates import FeatureGates
from kubestow.editions import edition_named
from kubestow.editions.choosing import rules_of
from kubestow.editions.v1_20.profiles import default_profile
from kubestow.engine.decide import Decider
from kubestow.engine.decision import Decision
from kubestow.engine.profiles import build_profiles
from kubestow.framework.profile import Profile
from kubestow.queue.nominator import Nominator
from kubestow.testing.handles import make_handle
from kubestow.testing.snapshots import make_cache
from tools.edition_workload import older_nodes, older_pods


def decider_of(version: str, objects: ClusterObjects) -> tuple[Snapshot, Decider, Profile]:
    snapshot = Snapshot()
    handle = make_handle(snapshot, objects=objects)
    nominator = Nominator(find=lambda _: None, pod_lister=lambda *_: None)
    handle.nominator = nominator
    edition = edition_named(version)
    config = default_profile(FeatureGates({}, edition))
    profiles = build_profiles([config], rules_of(edition).registry, lambda _: handle)
    decider = Decider(snapshot, nominator, percentage_of_nodes_to_score=100)
    return snapshot, decider, profiles[config.scheduler_name]


def summary(decision: Decision) -> Any:
    if decision.scores is not None:
        return decision.feasible.tolist(), np.asarray(decision.scores.total).tolist()
    if decision.is_scheduled:
        return decision.node_name
    return sorted(decision.diagnosis.reason_counts().items())


@pytest.mark.parametrize("version", ["v1.17", "v1.20"])
def test_decisions_do_not_depend_on_earlier_pods(version: str) -> None:
    objects, cache = ClusterObjects(), make_cache()
    for document in older_nodes():
        cache.add_node(convert(Node, document))
    snapshot, decider, profile = decider_of(version, objects)
    placed = 0
    for number, document in enumerate(older_pods(60)):
        uid = {"metadata": {**document["metadata"], "uid": f"u{number}"}}
        pod = convert(Pod, {**document, **uid})
        info = PodInfo(pod)
        snapshot.refresh(cache)
        decision = decider.decide(profile, info)
        found = summary(decision)
        fresh_snapshot, fresh_decider, fresh_profile = decider_of(version, objects)
        fresh_snapshot.refresh(cache)
        assert summary(fresh_decider.decide(fresh_profile, PodInfo(pod))) == found
        if decision.is_scheduled:
            placed += 1
            cache.assume_pod(info.assigned_to(decision.node_name))
    assert placed > 50
