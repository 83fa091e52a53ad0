"""ManyApps: what its applications have in common, and what each has by itself."""

from collections import Counter
from itertools import pairwise

from kubestow.simulator.bench.many_apps import many_apps


def test_each_application_has_its_replicas_and_rules_of_its_own() -> None:
    made = many_apps(40, 300, replicas=3, is_full=True)
    apps = Counter(pod.metadata.labels["app"] for pod in made.measured)
    assert len(apps) == 100
    assert set(apps.values()) == {3}
    specs = {pod.metadata.labels["app"]: pod.spec for pod in made.measured}
    assert len({str(spec) for spec in specs.values()}) == 100
    for pod in made.measured:
        assert specs[pod.metadata.labels["app"]] == pod.spec
        for constraint in pod.spec.topology_spread_constraints:
            assert constraint.label_selector is not None
            assert constraint.label_selector.match_labels == {"app": pod.metadata.labels["app"]}
    rules = Counter(
        "required" if affinity.required else "preferred"
        for spec in specs.values()
        if spec.affinity and (affinity := spec.affinity.pod_anti_affinity)
    )
    assert rules == {"required": 15, "preferred": 29}
    # Pods of one application do not follow each other.
    names = [pod.metadata.labels["app"] for pod in made.measured]
    assert sum(one == next_one for one, next_one in pairwise(names)) < 15


def test_plain_applications_differ_in_labels_images_and_requests() -> None:
    made = many_apps(4, 12, replicas=1, is_full=False)
    assert len({pod.metadata.labels["app"] for pod in made.measured}) == 12
    assert not any(
        pod.spec.affinity or pod.spec.topology_spread_constraints for pod in made.measured
    )
    assert len({str(pod.spec.containers[0].resources) for pod in made.measured}) == 12


def test_it_is_the_same_everywhere() -> None:
    first, second = (many_apps(5, 9, replicas=3, is_full=True) for _ in range(2))
    assert first == second
