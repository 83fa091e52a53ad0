"""The client's identity: a token, a name and password, or the output of a credential plugin.

An identity is valid for a limited time and then read again. Tokens in files are replaced (an API
server issues short-lived ones), and plugins state how long theirs last. When the server rejects an
identity, it is read again at once.

Not here: certificates given as files (`tls`), reading all this from a kubeconfig (`kubeconfig`).
"""

import asyncio
import base64
import logging
import math
import os
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import msgspec

from kubestow.api.meta import JsonObject
from kubestow.clock import NANOSECONDS, Clock
from kubestow.cluster.http.tls import CertificatePair
from kubestow.errors import ConfigError

logger = logging.getLogger(__name__)

TOKEN_FILE_S: Final = 60.0  # how long a token read from a file is used
PLUGIN_TIMEOUT_S: Final = 60.0
PLUGIN_VERSIONS: Final = (
    "client.authentication.k8s.io/v1",
    "client.authentication.k8s.io/v1beta1",
)

Headers = tuple[tuple[str, str], ...]


class Identity(NamedTuple):
    """What to send to the server, and until when (on the monotonic clock)."""

    headers: Headers = ()
    pair: CertificatePair | None = None
    valid_until_s: float = math.inf


class Credentials(Protocol):
    async def identify(self) -> Identity:
        """The identity to use from now on; ConfigError if there is none."""
        ...

    def rejected(self) -> bool:
        """The server rejected the identity; return whether a new one may be accepted."""
        ...


class FixedCredentials:
    """An identity that never changes; without headers, anonymous."""

    def __init__(self, headers: Headers = ()) -> None:
        self._identity = Identity(headers)

    async def identify(self) -> Identity:
        return self._identity

    def rejected(self) -> bool:
        return False


class TokenFile:
    """A token in a file that others replace, read again every minute."""

    def __init__(self, path: str, clock: Clock, *, fallback: str = "") -> None:
        self._path = Path(path)
        self._clock = clock
        self._token = fallback

    async def identify(self) -> Identity:
        try:
            token = self._path.read_text().strip()  # small and local
        except OSError as error:
            logger.warning('cannot read the token file "%s": %s', self._path, error.strerror)
            token = ""
        # An unreadable or empty file may be in the middle of being replaced.
        self._token = token or self._token
        if not self._token:
            raise ConfigError(f'there is no token in the file "{self._path}"')
        return Identity(bearer(self._token), None, self._clock.monotonic_s() + TOKEN_FILE_S)

    def rejected(self) -> bool:
        return True


class ExecSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A command that prints credentials (`users[].user.exec` of a kubeconfig)."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    api_version: str
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    cluster: JsonObject | None = None  # passed to the plugin with `provideClusterInfo`


class _ExecStatus(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _ExecStatus | None = None


class ExecPlugin:
    """Runs a command to get an identity, and again when that has expired."""

    def __init__(
        self, settings: ExecSettings, clock: Clock, *, environ: Mapping[str, str] = os.environ
    ) -> None:
        if settings.api_version not in PLUGIN_VERSIONS:
            raise ConfigError(
                f'credential plugin "{settings.command}" has version "{settings.api_version}",'
                f" expected one of {', '.join(PLUGIN_VERSIONS)}"
            )
        self._settings = settings
        self._clock = clock
        self._environ = environ

    async def identify(self) -> Identity:
        status = self._parse(await self._run())
        return Identity(
            bearer(status.token) if status.token else (),
            _pair_in(status, self._settings.command),
            self._valid_until_s(status.expiration_timestamp),
        )

    def rejected(self) -> bool:
        return True

    async def _run(self) -> bytes:
        settings = self._settings
        is_interactive = self._is_interactive()
        environ = {**self._environ, **dict(settings.env)}
        environ["KUBERNETES_EXEC_INFO"] = self._info(is_interactive)
        try:
            process = await asyncio.create_subprocess_exec(
                settings.command,
                *settings.args,
                env=environ,
                stdin=None if is_interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            hint = f"\n{settings.install_hint}" if settings.install_hint else ""
            raise ConfigError(
                f'cannot run the credential plugin "{settings.command}": {error.strerror}{hint}'
            ) from error
        try:
            async with asyncio.timeout(PLUGIN_TIMEOUT_S):
                output, _ = await process.communicate()
        except TimeoutError as error:
            raise ConfigError(
                f'credential plugin "{settings.command}" gave no answer within'
                f" {PLUGIN_TIMEOUT_S:.0f} s"
            ) from error
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode:
            raise ConfigError(
                f'credential plugin "{settings.command}" failed with exit code'
                f" {process.returncode}; see its message in the standard error output"
            )
        return output

    def _is_interactive(self) -> bool:
        mode = self._settings.interactive_mode
        has_terminal = sys.stdin is not None and sys.stdin.isatty()  # a service may have no stdin
        if mode == "Always" and not has_terminal:
            raise ConfigError(
                f'credential plugin "{self._settings.command}" needs a terminal'
                " (interactiveMode: Always), and there is none"
            )
        return has_terminal and mode != "Never"

    def _info(self, is_interactive: bool) -> str:
        spec: JsonObject = {"interactive": is_interactive}
        if self._settings.cluster is not None:
            spec["cluster"] = self._settings.cluster
        info = {
            "apiVersion": self._settings.api_version,
            "kind": "ExecCredential",
            "spec": spec,
        }
        return msgspec.json.encode(info).decode()

    def _parse(self, output: bytes) -> _ExecStatus:
        # What the plugin printed may hold a secret: it is not repeated in errors.
        what = f'the answer of credential plugin "{self._settings.command}"'
        try:
            credential = msgspec.json.decode(output, type=_ExecCredential)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{what} is no ExecCredential: {type(error).__name__}") from error
        if credential.api_version != self._settings.api_version:
            raise ConfigError(
                f'{what} is of version "{credential.api_version}",'
                f' expected "{self._settings.api_version}"'
            )
        status = credential.status
        if status is None:
            raise ConfigError(f"{what} has no status")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise ConfigError(f"{what} has only one of certificate and key, expected both")
        if not status.token and not status.client_key_data:
            raise ConfigError(f"{what} has neither a token nor a certificate")
        return status

    def _valid_until_s(self, expires: datetime | None) -> float:
        if expires is None:
            return math.inf
        left_s = expires.timestamp() - self._clock.now_ns() / NANOSECONDS
        return self._clock.monotonic_s() + left_s


def bearer(token: str) -> Headers:
    return (("Authorization", f"Bearer {token}"),)


def basic(user: str, password: str) -> Headers:
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    return (("Authorization", f"Basic {pair}"),)


def _pair_in(status: _ExecStatus, command: str) -> CertificatePair | None:
    if not status.client_key_data:
        return None
    try:
        return CertificatePair(
            status.client_certificate_data.encode("ascii"), status.client_key_data.encode("ascii")
        )
    except UnicodeEncodeError as error:
        raise ConfigError(
            f'the certificate of credential plugin "{command}" is not PEM text'
        ) from error
