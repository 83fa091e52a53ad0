"""Which versions this is: its own, that of Kubernetes which it follows, and what it runs on."""

import platform
from importlib.metadata import version

import msgspec

from kubestow import __version__
from kubestow.editions import CORE, NEWEST, edition_named


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    kubestow: str
    # Releases of Kubernetes whose decisions are followed, newest first.
    kubernetes: tuple[str, ...]
    python: str
    numpy: str


def versions() -> Versions:
    return Versions(
        kubestow=__version__,
        kubernetes=(edition_named(NEWEST).release, CORE.release),
        python=platform.python_version(),
        numpy=version("numpy"),
    )
