"""The zone key of a node (spec 01 §11)."""

import pytest

from kubestow.api.topology import zone_key

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, "", id="Z1-none"),
        pytest.param({"a": "b"}, "", id="Z1-unrelated"),
        pytest.param({REGION: "r1", ZONE: "z1"}, "r1:\0:z1", id="Z2"),
        pytest.param({ZONE: "z1"}, ":\0:z1", id="Z3-zone-only"),
        pytest.param({REGION: "r1"}, "r1:\0:", id="Z3-region-only"),
        pytest.param({ZONE: "z1", BETA_ZONE: "z0"}, ":\0:z0", id="Z4-beta-wins"),
        pytest.param({ZONE: "z1", BETA_ZONE: ""}, "", id="Z5-empty-beta-hides"),
        pytest.param({REGION: "r1", BETA_REGION: "r0", ZONE: "z"}, "r0:\0:z", id="beta-region"),
    ],
)
def test_zone_key_of_labels(labels: dict[str, str], expected: str) -> None:
    assert zone_key(labels) == expected
