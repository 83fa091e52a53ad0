"""What objects of each kind may be called."""

import pytest

from kubestow.apiserver.writes.names import name_errors
from kubestow.cluster.resources import default_resources

RESOURCES = default_resources()
SUBDOMAIN = "a lowercase RFC 1123 subdomain must"


@pytest.mark.parametrize(
    ("resource", "name", "rule"),
    [
        pytest.param("pods", "web-1", "", id="plain"),
        pytest.param("pods", "a.b-c", "", id="subdomain"),
        pytest.param("pods", "Web_1", SUBDOMAIN, id="capital"),
        pytest.param("pods", "x" * 254, "must be no more than 253 bytes", id="long"),
        pytest.param("namespaces", "a.b", "must not contain dots", id="namespace-with-a-dot"),
        pytest.param("namespaces", "a_b", "a lowercase RFC 1123 label must", id="namespace"),
        pytest.param("namespaces", "1a", "", id="namespace-with-a-digit"),
        pytest.param("namespaces", "x" * 64, "must be no more than 63 bytes", id="long-namespace"),
        pytest.param("services", "1a", "", id="service-with-a-digit"),
        pytest.param("services", "A", "a lowercase RFC 1123 label must", id="service"),
        pytest.param("clusterroles.rbac.authorization.k8s.io", "system:Node_1", "", id="role"),
        pytest.param(
            "clusterroles.rbac.authorization.k8s.io", "a/b", "may not contain '/'", id="role-path"
        ),
        pytest.param("roles.rbac.authorization.k8s.io", "..", "may not be '..'", id="role-dots"),
        pytest.param("ipaddresses.networking.k8s.io", "10.0.0.1", "", id="address"),
        pytest.param("ipaddresses.networking.k8s.io", "2001:db8::1", "", id="address-of-ipv6"),
        pytest.param(
            "ipaddresses.networking.k8s.io", "10.0.0", "must be a valid IP address", id="no-address"
        ),
    ],
)
def test_a_name_follows_the_rule_of_its_kind(resource: str, name: str, rule: str):
    found = list(name_errors(RESOURCES.named(resource), name))
    if not rule:
        assert found == []
    else:
        (error,) = found
        assert error.startswith(f'metadata.name: Invalid value: "{name}": {rule}')


def test_a_name_is_required():
    (error,) = name_errors(RESOURCES.named("pods"), "")
    assert error == "metadata.name: Required value: name or generateName is required"
