"""What pods request of the resources that a score is configured with."""

import pytest

from kubestow.api.meta import ResourceList
from kubestow.api.pod import Container, Pod, ResourceRequirements
from kubestow.api.pod_info import PodInfo
from kubestow.api.quantity import parse_quantity
from kubestow.api.requests import balance_request, score_request
from kubestow.config.plugin_args import ResourceSpec
from kubestow.plugins._shared.scoring_resources import ScoringResources
from kubestow.testing import make_pod

GPU = "example.com/gpu"
MI = 1 << 20


def container(**requests: str) -> Container:
    amounts: ResourceList = {name: parse_quantity(text) for name, text in requests.items()}
    return Container(name="c", resources=ResourceRequirements(requests=amounts))


def pod(*containers: Container) -> Pod:
    return make_pod(containers=containers)


PODS = {
    "plain": pod(container(cpu="1", memory="1Gi")),
    "defaults": pod(container(cpu="1"), container(memory="1Mi")),
    "scalar": pod(container(cpu="1", **{GPU: "2"})),
    "storage": pod(container(**{"ephemeral-storage": "3"})),
    "unknown-name": pod(container(weird="4")),
    "below-zero": pod(container(cpu="-1")),
}


@pytest.mark.parametrize("names", [(), ("cpu", GPU), ("memory", "ephemeral-storage"), ("weird",)])
@pytest.mark.parametrize("example", PODS.values(), ids=PODS)
def test_amounts_are_those_of_the_view(example: Pod, names: tuple[str, ...]) -> None:
    specs = [ResourceSpec(name=name, weight=2) for name in names]
    for view, use_non_zero in ((score_request, True), (balance_request, False)):
        resources = ScoringResources(specs, use_non_zero=use_non_zero)
        expected = resources.amounts(view(example))
        assert tuple(resources.amounts_of(PodInfo(example), view)) == tuple(expected)


def test_the_default_is_cpu_and_memory_of_equal_weight() -> None:
    resources = ScoringResources((), use_non_zero=True)
    names, amounts, weights = resources.request_of(PodInfo(PODS["defaults"]), score_request)
    assert names == ("cpu", "memory")
    assert amounts.tolist() == [[1100], [201 * MI]]
    assert weights.tolist() == [[1], [1]]


def test_a_scalar_counts_for_the_pods_that_request_it() -> None:
    specs = [ResourceSpec(name="cpu", weight=3), ResourceSpec(name=GPU, weight=5)]
    resources = ScoringResources(specs, use_non_zero=True)
    for name, expected in (("scalar", ("cpu", GPU)), ("plain", ("cpu",))):
        request = resources.request_of(PodInfo(PODS[name]), score_request)
        assert request.names == expected
        assert request.weights.ravel().tolist() == [3, 5][: len(expected)]
