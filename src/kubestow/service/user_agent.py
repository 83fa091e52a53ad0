"""How requests of this program are signed."""

import platform
import sys
from pathlib import Path
from typing import Final

from kubestow import __version__
from kubestow.editions import NEWEST

# Machines under the names that Go has for them.
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def user_agent() -> str:
    """The User-Agent of requests."""
    program = Path(sys.argv[0]).name or "kubestow"
    if program == "__main__.py":
        program = "kubestow"
    return f"{program}/{__version__} ({go_platform()}) kubernetes/{NEWEST}"


def go_platform() -> str:
    machine = platform.machine()
    return f"{sys.platform}/{_MACHINES.get(machine, machine)}"
