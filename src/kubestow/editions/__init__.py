"""Editions: the versions of Kubernetes that this scheduler can be (`Version`).

Each has a folder. Its `__init__` has what is data (`Edition`): gates, default plugins, names. The
other modules have what it computes in another way, under the name of the folder of the core whose
part they replace: `v1_9/plugins`, `v1_20/queue.py`. An edition is imported only when it is to run,
here and by what chooses between them:

    choosing     the rules of an edition
    starting     its process
    simulating   its simulation
    comparing    it as a variant of a comparison
    walking      its steps, told one by one

`shared` has what several editions have in common. v1.17 builds on v1.20.
"""

from typing import Final

from kubestow.editions.edition import Edition, Version
from kubestow.editions.v1_36 import EDITION as V1_36
from kubestow.errors import ConfigError

NEWEST: Final = V1_36


def edition_named(text: str) -> Edition:
    """The edition of a version; raises ConfigError."""
    try:
        version = Version(text)
    except ValueError as error:
        names = ", ".join(sorted(Version))
        raise ConfigError(f'--compatibility is "{text}", expected one of {names}') from error
    match version:
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
