"""The server certificate, and the authorities of client certificates (spec 09 §7).

A certificate file is read again when it changes, a certificate for the requested server name takes
precedence, and without any a self-signed one is made. The socket has one context that never
changes; for every connection it selects the current one.
"""

import os
import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from cryptography import x509

from kubestow.clock import Clock
from kubestow.cluster.pem import load_pair
from kubestow.cluster.self_signed import SelfSigned, self_signed
from kubestow.errors import ConfigError
from kubestow.http_port import CIPHERS
from kubestow.service.options import ServingOptions, SniCertificate

PAIR_NAME: Final = "kube-scheduler"
_ALL_ADDRESSES: Final = ("0.0.0.0", "::")
_VERSIONS: Final = {
    "": ssl.TLSVersion.TLSv1_2,
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
_CURVES: Final = {23: "prime256v1", 24: "secp384r1", 25: "secp521r1", 29: "X25519"}
# Go's names of the available cipher suites, and OpenSSL's.
_CIPHERS: Final = {
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
}
# Always offered with TLS 1.3.
_FIXED_CIPHERS: Final = frozenset(
    ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
)


class _Source(NamedTuple):
    """A certificate with its key in files or made in memory, and its names; none means any."""

    cert_file: str = ""
    key_file: str = ""
    names: tuple[str, ...] = ()
    made: SelfSigned | None = None


class ServingCertificates:
    """Chooses the certificate of each connection."""

    def __init__(
        self, options: ServingOptions, clock: Clock, authorities: Callable[[], bytes]
    ) -> None:
        """`authorities` returns the current ones of client certificates (PEM).

        Raises ConfigError if a certificate or a setting cannot be used.
        """
        self._options = options
        self._authorities = authorities
        main = _main_source(options, clock)
        self._sources = [*map(_sni_source, options.sni_certificates), main]
        self._contexts: dict[_Source, tuple[object, ssl.SSLContext]] = {}
        self.context: Final = self._build(main)
        # Called for every connection, with None if the client sends no server name.
        self.context.sni_callback = self._choose

    def _choose(
        self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext
    ) -> None:
        source = next(
            (
                source
                for source in self._sources
                if name is not None and any(_matches(pattern, name) for pattern in source.names)
            ),
            self._sources[-1],
        )
        connection.context = self._current(source)

    # --- contexts ---

    def _current(self, source: _Source) -> ssl.SSLContext:
        """The context with this certificate; the same while nothing changes."""
        authorities = self._authorities()
        state = (_stamp(source.cert_file), _stamp(source.key_file), authorities)
        known = self._contexts.get(source)
        if known is not None and known[0] == state:
            return known[1]
        try:
            context = self._build(source)
        except ConfigError:
            # The files are being replaced: the old certificate stays until both match.
            if known is None:
                raise
            return known[1]
        self._contexts[source] = (state, context)
        return context

    def _build(self, source: _Source) -> ssl.SSLContext:
        options = self._options
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = _VERSIONS[options.min_version]
        context.set_alpn_protocols(["http/1.1"])
        chosen = cipher_names(options.cipher_suites)
        if options.cipher_suites and not chosen:
            # All chosen suites are of TLS 1.3, so no older version can be used.
            context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.set_ciphers(":".join(chosen) or CIPHERS)
        if len(options.curve_preferences) == 1:  # OpenSSL's order cannot be set from here
            context.set_ecdh_curve(_curve(options.curve_preferences[0]))
        # Client certificates are optional: tokens authenticate, too.
        context.verify_mode = ssl.CERT_OPTIONAL
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        try:
            if source.made is not None:
                made = source.made
                load_pair(context, made.certificate + made.authority, made.key)
            else:
                context.load_cert_chain(source.cert_file, source.key_file)
        except (OSError, ssl.SSLError) as error:
            text = f'cannot use the certificate "{source.cert_file}" with key "{source.key_file}"'
            raise ConfigError(f"{text}: {error.strerror or error}") from error
        authorities = self._authorities().decode("ascii", errors="replace")
        if authorities.strip():
            try:
                context.load_verify_locations(cadata=authorities)
            except ssl.SSLError as error:
                raise ConfigError(f"cannot use the client authorities: {error}") from error
        return context


def cipher_names(suites: Iterable[str]) -> list[str]:
    """OpenSSL's names of cipher suites; ConfigError for an unknown one."""
    names: list[str] = []
    for suite in suites:
        if suite in _FIXED_CIPHERS:
            continue
        if suite not in _CIPHERS:
            raise ConfigError(f"Cipher suite {suite} not supported or doesn't exist")
        names.append(_CIPHERS[suite])
    return names


def _main_source(options: ServingOptions, clock: Clock) -> _Source:
    """The certificate for clients that request no name of another certificate."""
    if options.cert_file or options.key_file:
        if not (options.cert_file and options.key_file):
            raise ConfigError("--tls-cert-file and --tls-private-key-file go together")
        return _Source(options.cert_file, options.key_file)
    names = _own_names(options.bind_address)
    if not options.cert_dir:
        return _Source(made=self_signed(names, now_ns=clock.now_ns()))
    folder = Path(options.cert_dir)
    source = _Source(str(folder / f"{PAIR_NAME}.crt"), str(folder / f"{PAIR_NAME}.key"))
    if not (os.path.exists(source.cert_file) and os.path.exists(source.key_file)):
        _make_pair(source, names, clock)
    return source


def _curve(number: int) -> str:
    if number not in _CURVES:
        raise ConfigError(f"curve preference {number} is not supported")
    return _CURVES[number]


def _sni_source(certificate: SniCertificate) -> _Source:
    names = certificate.names or tuple(_names_in(certificate.cert_file))
    return _Source(certificate.cert_file, certificate.key_file, names)


def _names_in(path: str) -> list[str]:
    try:
        certificate = x509.load_pem_x509_certificate(Path(path).read_bytes())
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f'cannot read the certificate "{path}": {reason}') from error
    except x509.ExtensionNotFound:
        return []
    return [str(name) for name in extension.value.get_values_for_type(x509.DNSName)]


def _matches(pattern: str, name: str) -> bool:
    pattern, name = pattern.lower(), name.lower()
    if pattern.startswith("*."):
        return name.partition(".")[2] == pattern.removeprefix("*.")
    return pattern == name


def _own_names(bind_address: str) -> list[str]:
    specific = [] if bind_address in _ALL_ADDRESSES else [bind_address]
    return ["localhost", "127.0.0.1", *(name for name in specific if name != "127.0.0.1")]


def _make_pair(source: _Source, names: Iterable[str], clock: Clock) -> None:
    made = self_signed(names, now_ns=clock.now_ns())
    try:
        Path(source.cert_file).parent.mkdir(parents=True, exist_ok=True)
        Path(source.cert_file).write_bytes(made.certificate + made.authority)
        key = Path(source.key_file)
        key.touch(mode=0o600)
        key.write_bytes(made.key)
    except OSError as error:
        text = f'unable to generate self signed cert: cannot write "{error.filename}"'
        raise ConfigError(f"{text}: {error.strerror}") from error


def _stamp(path: str) -> object:
    """Differs between two versions of a file."""
    if not path:
        return None
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size)
