"""Which pods are siblings."""

import pytest

from kubestow.api.meta import OwnerReference
from kubestow.testing import make_pod
from kubestow.usage.workload import workload_of


def owned(kind, name, *, controller=True, labels=None):
    owner = OwnerReference(
        api_version="apps/v1", kind=kind, name=name, uid="u", controller=controller
    )
    return make_pod("a", namespace="web", labels=labels or {}, owner=owner)


@pytest.mark.parametrize(
    ("pod", "workload"),
    [
        pytest.param(make_pod("a"), "", id="pod-of-its-own"),
        pytest.param(owned("Job", "j"), "web/Job/j", id="job"),
        pytest.param(owned("Job", "j", controller=False), "", id="no-controller"),
        pytest.param(owned("ReplicaSet", "a-1"), "web/ReplicaSet/a-1", id="replica-set"),
        pytest.param(
            owned("ReplicaSet", "a-1", labels={"pod-template-hash": "1"}),
            "web/Deployment/a",
            id="deployment",
        ),
        pytest.param(
            owned("ReplicaSet", "a", labels={"pod-template-hash": "1"}),
            "web/ReplicaSet/a",
            id="other-hash",
        ),
    ],
)
def test_pods_of_one_controller_are_siblings(pod, workload):
    assert workload_of(pod) == workload
