"""Editions: the versions of Kubernetes that this scheduler can be (`Version`).

Each has a folder. Its `__init__` has what is data (`Edition`): gates, default plugins, names. The
other modules have what it computes in another way, under the name of the folder of the core whose
part they replace: `v1_9/plugins`, `v1_20/queue.py`. An edition is imported only when it is to run,
here and by what chooses between them:

    choosing     the rules of an edition
    starting     its process
    simulating   its simulation
    comparing    it as a variant of a comparison
    walking      its steps, one by one
    upgrading    what differs between it and the next one

`shared` has what several editions have in common. v1.17 builds on v1.20.
"""

import re
from typing import Final, NamedTuple

from kubestow.editions.edition import Edition, Version
from kubestow.editions.v1_36 import EDITION as V1_36
from kubestow.errors import ConfigError

# The one whose rules are the core's, and whose gates parts have that are built without any.
CORE: Final = V1_36
NEWEST: Final = Version.V1_37
_MINOR: Final = re.compile(r"v?1\.(\d+)")
# What commands use unless another version is given.
DEFAULT: Final = Version.V1_37


class ServerEdition(NamedTuple):
    """The edition for a server; `note` says why it is another one than that of its version."""

    edition: Edition
    note: str = ""


def edition_of_server(server_version: str) -> ServerEdition:
    """The edition for an API server that reports this version, such as v1.37.0-rc.1."""
    found = _MINOR.match(server_version)
    if found is None:
        return ServerEdition(
            edition_named(NEWEST), f'the server reports the version "{server_version}"'
        )
    minor, newest = int(found[1]), edition_named(NEWEST)
    if minor < CORE.minor:
        return ServerEdition(CORE, f"the server is {server_version}, older than {CORE.version}")
    if minor > newest.minor:
        return ServerEdition(newest, f"the server is {server_version}, newer than {NEWEST}")
    return ServerEdition(edition_named(f"v1.{minor}"))


def edition_named(text: str) -> Edition:
    """The edition of a version; raises ConfigError."""
    try:
        version = Version(text)
    except ValueError as error:
        names = ", ".join(sorted(Version))
        raise ConfigError(f'--compatibility is "{text}", expected one of {names}') from error
    match version:
        case Version.V1_37:
            from kubestow.editions.v1_37 import EDITION as V1_37

            return V1_37
        case Version.V1_36:
            return V1_36
        case Version.V1_20:
            from kubestow.editions.v1_20 import EDITION as V1_20

            return V1_20
        case Version.V1_17:
            from kubestow.editions.v1_17 import EDITION as V1_17

            return V1_17
        case Version.V1_9:
            from kubestow.editions.v1_9 import EDITION as V1_9

            return V1_9
