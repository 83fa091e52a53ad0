"""What a path names."""

import pytest

from kubestow.apiserver.http.routing import ApiPath, parse_path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/api/v1/pods", ApiPath("", "v1", "pods"), id="all"),
        pytest.param(
            "/api/v1/namespaces/shop/pods", ApiPath("", "v1", "pods", "shop"), id="in-a-namespace"
        ),
        pytest.param(
            "/api/v1/namespaces/shop/pods/a/binding",
            ApiPath("", "v1", "pods", "shop", "a", "binding"),
            id="part-of-an-object",
        ),
        pytest.param(
            "/apis/apps/v1/namespaces/shop/deployments/web",
            ApiPath("apps", "v1", "deployments", "shop", "web"),
            id="in-a-group",
        ),
        pytest.param("/api/v1/namespaces", ApiPath("", "v1", "namespaces"), id="namespaces"),
        pytest.param(
            "/api/v1/namespaces/shop", ApiPath("", "v1", "namespaces", "", "shop"), id="a-namespace"
        ),
        pytest.param(
            "/api/v1/namespaces/shop/finalize",
            ApiPath("", "v1", "namespaces", "", "shop", "finalize"),
            id="part-of-a-namespace",
        ),
        pytest.param(
            "/api/v1/nodes/n1/status", ApiPath("", "v1", "nodes", "", "n1", "status"), id="no-space"
        ),
        pytest.param(
            "/api/v1/namespaces/shop/pods/a/proxy/x/y",
            ApiPath("", "v1", "pods", "shop", "a", "proxy/x/y"),
            id="deeper",
        ),
        pytest.param("/api/v1", None, id="a-version"),
        pytest.param("/apis/apps", None, id="a-group"),
        pytest.param("/apis/apps/v1", None, id="a-version-of-a-group"),
        pytest.param("/healthz", None, id="something-else"),
        pytest.param("/", None, id="root"),
    ],
)
def test_a_path_names_a_resource_or_none(path: str, expected: ApiPath | None):
    assert parse_path(path) == expected
