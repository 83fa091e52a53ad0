"""Whether a connection goes directly or through a proxy.

A proxy comes from the kubeconfig or else from the environment, as with other tools: `HTTPS_PROXY`
and `HTTP_PROXY` by the server's scheme, `NO_PROXY` for the exceptions. Connections to this machine
never use the environment's proxy.
"""

import base64
import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from kubestow.errors import ConfigError
from kubestow.redaction import without_secrets

_PORTS: Final = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


class Endpoint(msgspec.Struct, frozen=True):
    """A host and port to connect to."""

    host: str
    port: int

    @property
    def authority(self) -> str:
        """Host and port as a URL has them; an IPv6 address goes in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Proxy(msgspec.Struct, frozen=True):
    scheme: str
    endpoint: Endpoint
    user: str = ""
    password: str = ""

    @property
    def is_socks(self) -> bool:
        return self.scheme.startswith("socks5")

    @property
    def authorization(self) -> str:
        """The value of a Proxy-Authorization header; empty if the proxy has no user."""
        if not self.user:
            return ""
        pair = f"{self.user}:{self.password}".encode()
        return "Basic " + base64.b64encode(pair).decode()


def parse_proxy(url: str) -> Proxy:
    """A proxy from its URL; without a scheme it is an HTTP proxy, as with other tools."""
    parts = _split(url if "://" in url else f"http://{url}")
    if parts.scheme not in _PORTS or not parts.hostname:
        # The URL may carry a password, so it is not repeated.
        raise ConfigError(
            f'cannot use the proxy of host "{parts.hostname or ""}" and scheme "{parts.scheme}":'
            f" expected a URL such as http://proxy:3128 with one of the schemes {', '.join(_PORTS)}"
        )
    return Proxy(
        parts.scheme,
        Endpoint(parts.hostname, _port(parts, "the proxy") or _PORTS[parts.scheme]),
        unquote(parts.username or ""),
        unquote(parts.password or ""),
    )


def endpoint_of(url: str) -> Endpoint:
    """The host and port of a server's URL."""
    parts = _split(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f'cannot use the server "{without_secrets(url)}": expected a URL such as https://host:6443'
        )
    return Endpoint(parts.hostname, _port(parts, "the server") or _PORTS[parts.scheme])


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:  # brackets that enclose no address
        return SplitResult("", "", "", "", "")


def proxy_from_environment(url: str, environ: Mapping[str, str]) -> Proxy | None:
    """The proxy the environment names for this server."""
    endpoint = endpoint_of(url)
    name = "https_proxy" if url.startswith("https:") else "http_proxy"
    found = environ.get(name.upper()) or environ.get(name)
    if not found or _is_this_machine(endpoint.host):
        return None
    exceptions = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    return None if is_excepted(endpoint, exceptions) else parse_proxy(found)


def is_excepted(endpoint: Endpoint, exceptions: str) -> bool:
    """Whether NO_PROXY names this host: by name, domain, address, network or `*`."""
    return any(
        _matches(endpoint, entry.strip().lower())
        for entry in exceptions.split(",")
        if entry.strip()
    )


def _matches(endpoint: Endpoint, entry: str) -> bool:
    host = endpoint.host.lower().rstrip(".")
    if entry == "*":
        return True
    address = _address(host)
    if "/" in entry:
        try:
            network = ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
        return address is not None and address in network
    name, _, port = entry.rpartition(":")
    if name and port.isdigit() and _address(entry) is None:
        if int(port) != endpoint.port:
            return False
        entry = name.strip("[]")
    if address is not None:
        return _address(entry) == address
    # ".example.com" means only subdomains, "example.com" also the name itself.
    domain = entry.removeprefix("*")
    if domain.startswith("."):
        return host.endswith(domain)
    return host == domain or host.endswith(f".{domain}")


def _is_this_machine(host: str) -> bool:
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _port(parts: SplitResult, of_what: str) -> int | None:
    try:
        return parts.port
    except ValueError as error:
        raise ConfigError(
            f'cannot read the port of {of_what} "{parts.hostname}": {error}'
        ) from error
