"""What an API server fills into claims and templates (spec 08 B2)."""

from typing import Any

import pytest

from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.writes.defaults import apply_defaults
from kubestow.cluster.resources import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, {"allocationMode": "ExactCount", "count": 1}, id="nothing"),
        pytest.param(
            {"allocationMode": "", "count": 0},
            {"allocationMode": "ExactCount", "count": 1},
            id="B15-empty-and-zero",
        ),
        pytest.param({"count": 3}, {"allocationMode": "ExactCount", "count": 3}, id="count"),
        pytest.param({"allocationMode": "All"}, {"allocationMode": "All"}, id="all"),
        pytest.param({"allocationMode": "New"}, {"allocationMode": "New"}, id="unknown"),
        pytest.param(
            {"allocationMode": "All", "tolerations": [{"key": "a"}, {"operator": "Exists"}]},
            {
                "allocationMode": "All",
                "tolerations": [{"key": "a", "operator": "Equal"}, {"operator": "Exists"}],
            },
            id="tolerations",
        ),
    ],
)
@pytest.mark.parametrize("is_template", [False, True])
@pytest.mark.parametrize("is_list", [False, True])
def test_requests(
    given: dict[str, Any], expected: dict[str, Any], is_template: bool, is_list: bool
) -> None:
    def document(details: dict[str, Any]) -> dict[str, Any]:
        request = {"firstAvailable": [details]} if is_list else {"exactly": details}
        spec = {"devices": {"requests": [{"name": "r", **request}]}}
        if is_template:
            return {"kind": "ResourceClaimTemplate", "spec": {"spec": spec}}
        return {"kind": "ResourceClaim", "spec": spec}

    defaulted = apply_defaults(document(given))
    assert defaulted == document(expected)
    assert apply_defaults(defaulted) is defaulted


def test_the_embedded_server_applies_them(cluster: MemoryCluster) -> None:
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "any"}}]}}
    exactly = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1}
    metadata = {"name": "x", "namespace": "default"}
    claim = cluster.create(RESOURCE_CLAIMS, {"metadata": metadata, "spec": spec})
    assert claim.document["spec"]["devices"]["requests"][0]["exactly"] == exactly
    template = cluster.create(
        RESOURCE_CLAIM_TEMPLATES, {"metadata": metadata, "spec": {"spec": spec}}
    )
    assert template.document["spec"]["spec"]["devices"]["requests"][0]["exactly"] == exactly
