"""Names that differ by a mistake are found, and names of one series are not taken for mistakes."""

import pytest

from kubestow.close_names import close_names


@pytest.mark.parametrize(
    ("given", "known", "expected"),
    [
        pytest.param("disc", "disk", True, id="a-letter"),
        pytest.param("dsik", "disk", True, id="swapped"),
        pytest.param("Disk", "disk", True, id="case"),
        pytest.param("zone", "topology.kubernetes.io/zone", True, id="prefix"),
        pytest.param("nvidia.com/gpus", "nvidia.com/gpu", True, id="plural"),
        pytest.param("disk", "disk", False, id="equal"),
        pytest.param("ssd", "hdd", False, id="short"),
        pytest.param("zone-a", "zone-b", False, id="letters-of-a-series"),
        pytest.param("node-1", "node-12", False, id="numbers-of-a-series"),
        pytest.param("us-east-1a", "us-east-1b", False, id="zones"),
        pytest.param("frontend", "backend", False, id="far"),
    ],
)
def test_close_names(given: str, known: str, expected: bool) -> None:
    assert bool(close_names(given, [known])) == expected
