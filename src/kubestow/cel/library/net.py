"""Addresses: IPs, ranges of them, URLs."""

import ipaddress
import re
from collections.abc import Callable
from operator import attrgetter, methodcaller
from typing import Final
from urllib.parse import parse_qs, quote, urlsplit

from kubestow.cel.errors import CelError
from kubestow.cel.functions import Overload, function, method
from kubestow.cel.static_types import (
    BOOL,
    CIDR,
    INT,
    IP,
    STRING,
    URL,
    list_of,
    map_of,
)
from kubestow.cel.values import Value, name_type

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_PREFIX_LENGTH: Final = re.compile("0|[1-9][0-9]{0,2}")
_SCHEME: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]*")
_HOST: Final = re.compile(r"(?P<name>\[[^\]]*\]|[^:]*)(?::(?P<port>[0-9]*))?")


class Network:
    """An address with the length of its prefix; bits behind the prefix are kept."""

    __slots__ = ("address", "prefix_length")

    def __init__(self, address: Address, prefix_length: int) -> None:
        self.address = address
        self.prefix_length = prefix_length

    def masked(self) -> "Network":
        shift = self.address.max_prefixlen - self.prefix_length
        return Network(type(self.address)(int(self.address) >> shift << shift), self.prefix_length)

    def contains(self, other: "Network") -> bool:
        if type(other.address) is not type(self.address):
            return False
        shift = self.address.max_prefixlen - self.prefix_length
        return (
            other.prefix_length >= self.prefix_length
            and int(self.address) >> shift == int(other.address) >> shift
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Network)
            and self.address == other.address
            and self.prefix_length == other.prefix_length
        )

    def __hash__(self) -> int:
        return hash((self.address, self.prefix_length))

    def __str__(self) -> str:
        return f"{self.address}/{self.prefix_length}"


class Url:
    """A URL with an absolute path, or an absolute path alone."""

    __slots__ = ("host", "path", "query", "scheme")

    def __init__(self, scheme: str, host: str, path: str, query: str) -> None:
        self.scheme = scheme
        self.host = host
        self.path = path
        self.query = query

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Url) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        query = f"?{self.query}" if self.query else ""
        return f"{self.scheme}://{self.host}{self.path}{query}"


name_type(ipaddress.IPv4Address, IP.name)
name_type(ipaddress.IPv6Address, IP.name)
name_type(Network, CIDR.name)
name_type(Url, URL.name)


# --- IPs --------------------------------------------------------------------------------------


def _ip(text: str) -> Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise CelError(f'IP Address "{text}" parse error during conversion from string') from error
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            raise CelError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
        if address.scope_id is not None:
            raise CelError(f'IP address "{text}" with zone value is not allowed')
    return address


def _cidr(text: str) -> Network:
    address, slash, length = text.partition("/")
    message = f'network address parse error during conversion from string: "{text}"'
    if not slash or not _PREFIX_LENGTH.fullmatch(length):
        raise CelError(message)
    try:
        network = Network(_ip(address), int(length))
    except CelError as error:
        raise CelError(message) from error
    if network.prefix_length > network.address.max_prefixlen:
        raise CelError(message)
    return network


def _succeeds(convert: Callable[[str], Value]) -> Callable[[str], bool]:
    def attempt(text: str) -> bool:
        try:
            convert(text)
        except CelError:
            return False
        return True

    return attempt


def _is_global_unicast(address: Address) -> bool:
    is_broadcast = address == ipaddress.IPv4Address("255.255.255.255")
    return not (
        is_broadcast
        or address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
    )


def _is_link_local_multicast(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address in ipaddress.IPv4Network("224.0.0.0/24")
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


def _is_canonical(text: str) -> bool:
    return str(_ip(text)) == text


def _contains_ip(network: Network, address: Address) -> bool:
    return network.contains(Network(address, address.max_prefixlen))


def _contains_ip_text(network: Network, address: str) -> bool:
    return _contains_ip(network, _ip(address))


def _contains_cidr_text(network: Network, other: str) -> bool:
    return network.contains(_cidr(other))


IPS: Final[tuple[Overload, ...]] = (
    function("ip", (STRING,), IP, _ip),
    function("isIP", (STRING,), BOOL, _succeeds(_ip)),
    function("ip.isCanonical", (STRING,), BOOL, _is_canonical),
    function("string", (IP,), STRING, str),
    method("family", (IP,), INT, attrgetter("version")),
    method("isUnspecified", (IP,), BOOL, attrgetter("is_unspecified")),
    method("isLoopback", (IP,), BOOL, attrgetter("is_loopback")),
    method("isLinkLocalMulticast", (IP,), BOOL, _is_link_local_multicast),
    method("isLinkLocalUnicast", (IP,), BOOL, attrgetter("is_link_local")),
    method("isGlobalUnicast", (IP,), BOOL, _is_global_unicast),
    function("cidr", (STRING,), CIDR, _cidr),
    function("isCIDR", (STRING,), BOOL, _succeeds(_cidr)),
    function("string", (CIDR,), STRING, str),
    method("containsIP", (CIDR, IP), BOOL, _contains_ip),
    method("containsIP", (CIDR, STRING), BOOL, _contains_ip_text),
    method("containsCIDR", (CIDR, CIDR), BOOL, Network.contains),
    method("containsCIDR", (CIDR, STRING), BOOL, _contains_cidr_text),
    method("ip", (CIDR,), IP, attrgetter("address")),
    method("masked", (CIDR,), CIDR, methodcaller("masked")),
    method("prefixLength", (CIDR,), INT, attrgetter("prefix_length")),
)


# --- URLs -------------------------------------------------------------------------------------


def parse_url(text: str) -> Url:
    message = f"URL parse error during conversion from string: parse {text!r}: invalid URI"
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise CelError(message) from error
    is_absolute_path = text.startswith("/")
    if not is_absolute_path and not (_SCHEME.fullmatch(parts.scheme) and parts.netloc):
        raise CelError(message)
    if any(ord(character) <= 0x20 or ord(character) == 0x7F for character in text):
        raise CelError(message)
    host = parts.netloc.rpartition("@")[2]
    if _HOST.fullmatch(host) is None:
        raise CelError(message)
    return Url(parts.scheme, host, parts.path, parts.query)


def _escaped_path(url: Url) -> str:
    return quote(url.path, safe="/%:@!$&'()*+,;=~")


def _hostname(url: Url) -> str:
    match = _HOST.fullmatch(url.host)
    return "" if match is None else match["name"].strip("[]")


def _port(url: Url) -> str:
    match = _HOST.fullmatch(url.host)
    return "" if match is None else match["port"] or ""


def _query(url: Url) -> dict[str, tuple[str, ...]]:
    values = parse_qs(url.query, keep_blank_values=True)
    return {key: tuple(found) for key, found in values.items()}


URLS: Final[tuple[Overload, ...]] = (
    function("url", (STRING,), URL, parse_url),
    function("isURL", (STRING,), BOOL, _succeeds(parse_url)),
    method("getScheme", (URL,), STRING, attrgetter("scheme")),
    method("getHost", (URL,), STRING, attrgetter("host")),
    method("getHostname", (URL,), STRING, _hostname),
    method("getPort", (URL,), STRING, _port),
    method("getEscapedPath", (URL,), STRING, _escaped_path),
    method("getQuery", (URL,), map_of(STRING, list_of(STRING)), _query),
)
