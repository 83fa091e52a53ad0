"""The listening socket, and an end that waits for open requests (spec 09 §7, §11)."""

import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final

from kubestow.errors import ConfigError
from kubestow.http_port import BACKLOG, HttpPort
from kubestow.service.options import ServingOptions
from kubestow.service.serving.application import Application

log = logging.getLogger(__name__)

# How long open requests may take when the process ends.
SHUTDOWN_S: Final = 5.0
# Each takes some 100 KiB. As many as clients without credentials hold are no burden; where they
# have to make way for each other, each costs a handshake again.
CONNECTIONS_MAX: Final = 2048


class HttpsServer:
    def __init__(
        self,
        application: Application,
        bound: socket.socket,
        tls: ssl.SSLContext,
        *,
        on_refused: Callable[[], None],
    ) -> None:
        self.address: Final = address_text(bound)
        self._port = HttpPort(
            application.handle,
            bound,
            tls=tls,
            cancels_handlers=True,
            on_refused=on_refused,
            connections_max=CONNECTIONS_MAX,
        )

    def start(self) -> None:
        self._port.start()
        log.info("Serving securely on %s", self.address)

    async def close(self) -> None:
        """Stop listening, then wait for open requests, at most `SHUTDOWN_S`."""
        await self._port.stop_listening()
        log.info("[graceful-termination] secure server has stopped listening")
        await self._port.close(timeout_s=SHUTDOWN_S)
        log.info("[graceful-termination] secure server is exiting")


def bind_socket(options: ServingOptions) -> socket.socket:
    """A socket on the configured address and port; ConfigError if it cannot be bound."""
    wanted = f"{_bracketed(options.bind_address)}:{options.port}"
    try:
        return _bind(options)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(
            f"failed to create listener: failed to listen on {wanted}: "
            f"listen tcp {wanted}: bind: {reason}"
        ) from error


def address_text(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"{_bracketed(host)}:{port}"


def _bind(options: ServingOptions) -> socket.socket:
    address = options.bind_address
    is_any = address in ("0.0.0.0", "::")
    # All addresses means both families, where the machine has both.
    is_v6 = ":" in address or (is_any and socket.has_dualstack_ipv6())
    bound = socket.socket(socket.AF_INET6 if is_v6 else socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if options.permit_port_sharing:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if is_v6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if is_any else 1)
        bound.bind(("::" if is_any and is_v6 else address, options.port))
        bound.listen(BACKLOG)
        bound.setblocking(False)
    except OSError:
        bound.close()
        raise
    return bound


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
