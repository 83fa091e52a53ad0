"""Which versions this is: its own, that of Kubernetes which it follows, and what it runs on."""

import platform
from importlib.metadata import version
from typing import Final

import msgspec

from kubestow import __version__

# The version of Kubernetes whose behaviour is implemented, and that is reported as it reports it.
UPSTREAM_VERSION: Final = "v1.36.4"


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    kubestow: str
    kubernetes: str
    python: str
    numpy: str


def versions() -> Versions:
    return Versions(
        kubestow=__version__,
        kubernetes=UPSTREAM_VERSION,
        python=platform.python_version(),
        numpy=version("numpy"),
    )
