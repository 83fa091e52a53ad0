"""TLS contexts from the certificates of server and client.

Certificates may be given as text or as files. Files are checked for changes before each new
connection, so that one replaced on disk is used without a restart.

Not here: tokens (`credentials`).
"""

import ssl
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from kubestow.cluster.pem import load_pair
from kubestow.errors import ConfigError


class CertificatePair(msgspec.Struct, frozen=True):
    """A client certificate and its key, as PEM text."""

    certificate: bytes
    key: bytes


class TlsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How to secure connections. Text (`…_data`) takes precedence over a file."""

    ca_file: str = ""
    ca_data: bytes = b""
    certificate_file: str = ""
    certificate_data: bytes = b""
    key_file: str = ""
    key_data: bytes = b""
    server_name: str = ""
    skips_verification: bool = False


class _Stamp(NamedTuple):
    """Distinguishes versions of a file."""

    changed_ns: int
    size: int


class TlsContexts:
    """Gives the context for the next connection; the same one as long as nothing changed."""

    def __init__(self, settings: TlsSettings) -> None:
        self.server_name: Final = settings.server_name  # to expect instead of the host's own
        self._settings: Final = settings
        self._pair: CertificatePair | None = None
        self._context: ssl.SSLContext | None = None
        self._stamps: tuple[_Stamp | None, ...] = ()

    def use_pair(self, pair: CertificatePair | None) -> None:
        """Use this certificate (from a plugin) from the next connection on."""
        if pair != self._pair:
            self._pair = pair
            self._context = None

    def current(self) -> ssl.SSLContext:
        stamps = tuple(_stamp(path) for path in self._files())
        if self._context is None or stamps != self._stamps:
            self._context = build_context(self._settings, self._pair)
            self._stamps = stamps
        return self._context

    def _files(self) -> tuple[str, ...]:
        settings = self._settings
        return settings.ca_file, settings.certificate_file, settings.key_file


def build_context(settings: TlsSettings, pair: CertificatePair | None = None) -> ssl.SSLContext:
    """The context for these settings; ConfigError says which certificate cannot be used."""
    # Not `create_default_context`: it rejects certificates that clusters commonly have (without key
    # identifiers), which every other client accepts.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # A certificate given as authority is trusted, even if another one signed it.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["http/1.1"])
    if settings.skips_verification:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        _load_authorities(context, settings)
    if pair is not None:
        _load_pair(context, pair, "from the credential plugin")
    elif settings.certificate_file or settings.certificate_data:
        certificate = settings.certificate_data or _read(settings.certificate_file)
        key = settings.key_data or _read(settings.key_file)
        source = f'"{settings.certificate_file}"' if not settings.certificate_data else "given"
        _load_pair(context, CertificatePair(certificate, key), source)
    return context


def _load_authorities(context: ssl.SSLContext, settings: TlsSettings) -> None:
    try:
        if settings.ca_data:
            context.load_verify_locations(cadata=settings.ca_data.decode("ascii"))
        elif settings.ca_file:
            context.load_verify_locations(cafile=settings.ca_file)
        else:
            context.load_default_certs()
    except (OSError, ssl.SSLError, ValueError) as error:
        source = "given as data" if settings.ca_data else f'"{settings.ca_file}"'
        raise ConfigError(f"cannot use the certificate authority {source}: {error}") from error


def _load_pair(context: ssl.SSLContext, pair: CertificatePair, source: str) -> None:
    try:
        load_pair(context, pair.certificate, pair.key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"cannot use the client certificate {source}: {error}") from error


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f'cannot read "{path}": {error.strerror}') from error


def _stamp(path: str) -> _Stamp | None:
    if not path:
        return None
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return _Stamp(found.st_mtime_ns, found.st_size)
