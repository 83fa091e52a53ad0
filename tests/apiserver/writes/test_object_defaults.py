"""Defaults of kinds that the scheduler does not read."""

from typing import Any

import pytest

from kubestow.apiserver.writes.defaults import apply_defaults


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(
            {"kind": "Secret", "data": {"a": "eA=="}, "stringData": {"b": "y"}},
            {"kind": "Secret", "type": "Opaque", "data": {"a": "eA==", "b": "eQ=="}},
            id="secret",
        ),
        pytest.param(
            {"kind": "NetworkPolicy", "spec": {"podSelector": {}, "egress": [{}]}},
            {
                "kind": "NetworkPolicy",
                "spec": {
                    "podSelector": {},
                    "egress": [{}],
                    "policyTypes": ["Ingress", "Egress"],
                },
            },
            id="network-policy",
        ),
        pytest.param(
            {
                "kind": "RoleBinding",
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [{"kind": "User", "name": "jane"}, {"kind": "ServiceAccount"}],
            },
            {
                "kind": "RoleBinding",
                "roleRef": {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
                "subjects": [
                    {"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"},
                    {"kind": "ServiceAccount"},
                ],
            },
            id="binding",
        ),
        pytest.param(
            {"kind": "CronJob", "spec": {"schedule": "0 0 * * *", "suspend": True}},
            {
                "kind": "CronJob",
                "spec": {
                    "schedule": "0 0 * * *",
                    "suspend": True,
                    "concurrencyPolicy": "Allow",
                    "successfulJobsHistoryLimit": 3,
                    "failedJobsHistoryLimit": 1,
                },
            },
            id="cron-job",
        ),
    ],
)
def test_missing_fields_are_filled_in(document: Any, expected: Any):
    assert apply_defaults(document) == expected
    assert apply_defaults(expected) == expected
