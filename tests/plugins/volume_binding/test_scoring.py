"""Spec 07 §2.7: nodes by what the pod would leave of their storage."""

import pytest

from kubestow.plugins._shared.curve import UtilizationCurve
from kubestow.plugins.volume_binding.delayed import VolumePlan
from kubestow.plugins.volume_binding.matching import ChosenVolume
from kubestow.plugins.volume_binding.provisioning import Provision
from kubestow.plugins.volume_binding.scoring import score_of
from kubestow.testing.storage import make_capacity, make_claim, make_volume

EMPTIEST = UtilizationCurve([(0, 100), (100, 0)])
FULLEST = UtilizationCurve([(0, 0), (100, 100)])


def provision(class_name: str, size: str, left: str | None) -> Provision:
    capacity = make_capacity(size=left, maximum="1Ti")
    return Provision(make_claim(size=size, class_name=class_name), capacity)


def binding(class_name: str, size: str, offered: str) -> ChosenVolume:
    claim = make_claim(size=size, class_name="not-read")
    return ChosenVolume(claim, make_volume(class_name=class_name, size=offered))


@pytest.mark.parametrize(
    ("plan", "curve", "score"),
    [
        pytest.param(VolumePlan((), ()), EMPTIEST, 0, id="nothing"),
        pytest.param(
            VolumePlan((), (provision("a", "10Gi", "100Gi"), provision("b", "50Gi", "60Gi"))),
            EMPTIEST,
            54,
            id="8-half-is-rounded-up",
        ),
        pytest.param(
            VolumePlan((), (provision("a", "20Gi", "100Gi"), provision("a", "30Gi", "100Gi"))),
            EMPTIEST,
            50,
            id="8-one-class",
        ),
        pytest.param(
            VolumePlan((), (Provision(make_claim(), None),)), EMPTIEST, 0, id="no-capacity-object"
        ),
        pytest.param(
            VolumePlan((), (provision("a", "1Gi", None),)), FULLEST, 100, id="capacity-not-given"
        ),
        pytest.param(
            VolumePlan((), (provision("a", "2Gi", "1Gi"),)), FULLEST, 100, id="more-than-left"
        ),
        pytest.param(
            VolumePlan((binding("a", "1Gi", "4Gi"),), (provision("b", "1Gi", "1Gi"),)),
            FULLEST,
            25,
            id="volumes-found-come-first",
        ),
        pytest.param(
            VolumePlan((binding("a", "1Gi", "4Gi"), binding("a", "2Gi", "4Gi")), ()),
            FULLEST,
            37,
            id="sums-are-cut",
        ),
    ],
)
def test_scores(plan: VolumePlan, curve: UtilizationCurve, score: int) -> None:
    assert score_of(plan, curve) == score
