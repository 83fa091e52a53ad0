"""A port for a process that is told where to serve, and that starts a while later.

A port that the system has just given out and taken back is free, and the next connection of any
other process may get it. Ports below the range that the system gives out stay free until then.
"""

import secrets
import socket
from pathlib import Path
from typing import Final

LOOPBACK: Final = "127.0.0.1"
# Above those of usual services.
LOWEST: Final = 12_000
# Of Linux: the first and the last port that it gives out.
_GIVEN_OUT: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_GIVEN_OUT_FROM: Final = 32_768  # Where the system does not report it.
_TRIES: Final = 100


def free_port() -> int:
    """A port of this machine on which nothing listens."""
    count = _first_given_out() - LOWEST
    for _ in range(_TRIES if count > 0 else 0):
        # At random, because several test processes ask at once.
        port = LOWEST + secrets.randbelow(count)
        if _can_be_bound(port):
            return port
    with socket.socket() as found:
        found.bind((LOOPBACK, 0))
        return found.getsockname()[1]


def _first_given_out() -> int:
    try:
        return int(_GIVEN_OUT.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return _GIVEN_OUT_FROM


def _can_be_bound(port: int) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
