"""Spec 07 §1.3: claims and their states."""

import pytest

from kubestow.api.pod import PersistentVolumeClaimSource, Volume
from kubestow.api.storage import PersistentVolumeClaim
from kubestow.api.volume_claims import (
    CLASS_ANNOTATION,
    claim_class,
    claim_name,
    is_claimed_by,
    is_fully_bound,
    names_claim,
    ownership_error,
    requested_storage,
    uses_claim,
    volume_class,
)
from kubestow.testing import make_pod
from kubestow.testing.storage import (
    make_claim,
    make_ephemeral_volume,
    make_volume,
)


def test_a_volume_uses_the_claim_it_names_or_that_is_made_for_it() -> None:
    pod = make_pod("web")
    named = Volume(name="v", persistent_volume_claim=PersistentVolumeClaimSource(claim_name="c"))
    assert claim_name(pod, named) == "c"
    assert claim_name(pod, make_ephemeral_volume("v")) == "web-v"
    assert claim_name(pod, Volume(name="v")) is None


def test_an_ephemeral_claim_belongs_to_its_pod() -> None:
    pod, other = make_pod("web"), make_pod("other")
    assert ownership_error(pod, make_claim("web-v", owner=pod)) == ""
    for stranger in (make_claim("web-v", owner=other), make_claim("web-v")):
        assert ownership_error(pod, stranger) == (
            "PVC default/web-v was not created for pod default/web (pod is not owner)"
        )


def test_claims_are_used_in_the_pods_namespace_only() -> None:
    pod = make_pod("web", pvcs=["c"], volumes=[make_ephemeral_volume("v")])
    assert uses_claim(pod, make_claim("c"))
    assert uses_claim(pod, make_claim("web-v"))
    assert not uses_claim(pod, make_claim("c", namespace="elsewhere"))
    assert names_claim(pod, make_claim("c"))
    assert not names_claim(pod, make_claim("web-v"))
    assert not names_claim(pod, make_claim("c", namespace="elsewhere"))


@pytest.mark.parametrize(
    ("claim", "name"),
    [
        pytest.param(make_claim(class_name=None), "", id="none"),
        pytest.param(make_claim(class_name="a"), "a", id="field"),
        pytest.param(
            make_claim(class_name="a", annotations={CLASS_ANNOTATION: "b"}), "b", id="annotation"
        ),
        pytest.param(
            make_claim(class_name="a", annotations={CLASS_ANNOTATION: ""}), "", id="empty"
        ),
    ],
)
def test_the_annotation_wins_over_the_class(claim: PersistentVolumeClaim, name: str) -> None:
    assert claim_class(claim) == name


def test_volumes_have_the_annotation_too() -> None:
    assert volume_class(make_volume(class_name="a")) == "a"
    assert volume_class(make_volume(class_name="a", annotations={CLASS_ANNOTATION: "b"})) == "b"


def test_a_claim_is_bound_when_the_binding_is_complete() -> None:
    assert is_fully_bound(make_claim(volume="pv"))
    assert not is_fully_bound(make_claim(volume="pv", is_bound=False))
    assert not is_fully_bound(make_claim(is_bound=True))


def test_a_volume_is_claimed_by_name_and_uid() -> None:
    claim = make_claim("c")
    assert is_claimed_by(make_volume(claim=claim), claim)
    assert is_claimed_by(make_volume(claim="default/c"), claim)
    assert not is_claimed_by(make_volume(claim="other/c"), claim)
    assert not is_claimed_by(make_volume(claim="default/d"), claim)
    assert not is_claimed_by(make_volume(), claim)
    namesake = make_volume(claim=make_claim("c", namespace="other"))
    assert not is_claimed_by(namesake, claim)


def test_a_missing_size_is_zero() -> None:
    assert requested_storage(make_claim(size=None)).nano == 0
    assert requested_storage(make_claim(size="1Ki")).value() == 1024
