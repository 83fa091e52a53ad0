"""Whether a connection goes directly or through a proxy."""

import pytest

from kubestow.cluster.http.proxy import (
    Endpoint,
    Proxy,
    endpoint_of,
    is_excepted,
    parse_proxy,
    proxy_from_environment,
)
from kubestow.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        pytest.param("http://proxy:3128", Proxy("http", Endpoint("proxy", 3128)), id="http"),
        pytest.param("proxy:3128", Proxy("http", Endpoint("proxy", 3128)), id="no-scheme"),
        pytest.param("https://proxy", Proxy("https", Endpoint("proxy", 443)), id="https"),
        pytest.param("socks5://[::1]", Proxy("socks5", Endpoint("::1", 1080)), id="socks"),
        pytest.param(
            "http://ann:a%40b@proxy", Proxy("http", Endpoint("proxy", 80), "ann", "a@b"), id="user"
        ),
    ],
)
def test_a_proxy_from_its_url(url: str, expected: Proxy):
    assert parse_proxy(url) == expected


def test_a_password_becomes_a_header():
    assert parse_proxy("http://ann:pw@proxy").authorization == "Basic YW5uOnB3"
    assert parse_proxy("http://proxy").authorization == ""


@pytest.mark.parametrize("url", ["ftp://user:hush@proxy", "http://user:hush@:1", "http://"])
def test_an_unusable_proxy_is_named_without_its_password(url: str):
    with pytest.raises(ConfigError, match="cannot use the proxy") as caught:
        parse_proxy(url)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        pytest.param("https://host:6443/k8s", Endpoint("host", 6443), id="port"),
        pytest.param("https://host", Endpoint("host", 443), id="https"),
        pytest.param("http://[::1]", Endpoint("::1", 80), id="http"),
    ],
)
def test_the_endpoint_of_a_server(url: str, expected: Endpoint):
    assert endpoint_of(url) == expected


def test_a_server_that_is_no_url():
    with pytest.raises(ConfigError, match='cannot use the server "host:6443"'):
        endpoint_of("host:6443")
    with pytest.raises(ConfigError, match="port of the server"):
        endpoint_of("https://host:port")


@pytest.mark.parametrize(
    ("environ", "server", "expected"),
    [
        pytest.param({}, "https://api:1", None, id="none"),
        pytest.param({"HTTPS_PROXY": "p:1"}, "https://api:1", "p", id="https"),
        pytest.param({"https_proxy": "p:1"}, "https://api:1", "p", id="lower-case"),
        pytest.param({"HTTP_PROXY": "p:1"}, "https://api:1", None, id="other-scheme"),
        pytest.param({"HTTP_PROXY": "p:1"}, "http://api:1", "p", id="http"),
        pytest.param({"HTTPS_PROXY": "p:1"}, "https://127.0.0.1:1", None, id="loopback"),
        pytest.param({"HTTPS_PROXY": "p:1"}, "https://localhost", None, id="localhost"),
        pytest.param(
            {"HTTPS_PROXY": "p:1", "NO_PROXY": "x, api"}, "https://api", None, id="excepted"
        ),
    ],
)
def test_the_proxy_of_the_environment(environ: dict[str, str], server: str, expected: str | None):
    proxy = proxy_from_environment(server, environ)
    assert (None if proxy is None else proxy.endpoint.host) == expected


@pytest.mark.parametrize(
    ("host", "exceptions", "expected"),
    [
        pytest.param("api.example.com", "example.com", True, id="domain"),
        pytest.param("example.com", "example.com", True, id="the-name-itself"),
        pytest.param("badexample.com", "example.com", False, id="only-whole-labels"),
        pytest.param("api.example.com", ".example.com", True, id="below"),
        pytest.param("example.com", ".example.com", False, id="not-the-name-itself"),
        pytest.param("API.Example.com.", "*.example.com", True, id="case-and-dot"),
        pytest.param("anything", "*", True, id="everything"),
        pytest.param("10.1.2.3", "10.0.0.0/8", True, id="network"),
        pytest.param("11.1.2.3", "10.0.0.0/8", False, id="other-network"),
        pytest.param("host", "10.0.0.0/8", False, id="name-and-network"),
        pytest.param("host", "no/network", False, id="no-network"),
        pytest.param("10.1.2.3", "10.1.2.3", True, id="address"),
        pytest.param("10.1.2.3", "2.3", False, id="address-is-no-domain"),
        pytest.param("fd00::1", "fd00:0::1", True, id="address-6"),
        pytest.param("host", "host:6443", True, id="port"),
        pytest.param("host", "host:443", False, id="other-port"),
        pytest.param("fd00::1", "[fd00::1]:6443", True, id="address-6-port"),
        pytest.param("host", " ,,", False, id="empty"),
    ],
)
def test_exceptions(host: str, exceptions: str, expected: bool):
    assert is_excepted(Endpoint(host, 6443), exceptions) is expected
