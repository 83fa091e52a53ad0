"""Codes of reasons. That every recorded reason has one is tested with the recordings."""

import pytest

from kubestow.explain.reason_codes import reason_code


@pytest.mark.parametrize(
    ("plugin", "reason", "code"),
    [
        ("NodeResourcesFit", "Insufficient cpu", "InsufficientCPU"),
        ("NodeResourcesFit", "Insufficient nvidia.com/gpu", "InsufficientExtendedResource"),
        ("NodeResourcesFit", "Insufficient cpuset", "InsufficientExtendedResource"),
        ("VolumeBinding", 'persistentvolumeclaim "a" not found', "ClaimNotFound"),
        ("", "node(s) didn't satisfy plugin(s) [NodeAffinity]", "RestrictedByPreFilter"),
        ("RackSpread", "Insufficient cpu", "Other"),
        ("NodeResourcesFit", "something new", "Other"),
    ],
)
def test_a_reason_has_a_code(plugin: str, reason: str, code: str) -> None:
    assert reason_code(plugin, reason) == code
