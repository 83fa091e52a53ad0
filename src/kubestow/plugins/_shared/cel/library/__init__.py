"""Every function an expression may call (spec 08 B8), one file per library."""

from typing import Final

from kubestow.plugins._shared.cel.functions import Overload
from kubestow.plugins._shared.cel.library.formats import FORMATS
from kubestow.plugins._shared.cel.library.lists import LISTS
from kubestow.plugins._shared.cel.library.net import IPS, URLS
from kubestow.plugins._shared.cel.library.optionals import OPTIONALS
from kubestow.plugins._shared.cel.library.quantities import QUANTITIES
from kubestow.plugins._shared.cel.library.regex import REGEX
from kubestow.plugins._shared.cel.library.semvers import SEMVERS
from kubestow.plugins._shared.cel.library.standard import STANDARD
from kubestow.plugins._shared.cel.library.strings import STRINGS

LIBRARY: Final[tuple[Overload, ...]] = (
    *STANDARD,
    *STRINGS,
    *LISTS,
    *REGEX,
    *OPTIONALS,
    *QUANTITIES,
    *SEMVERS,
    *IPS,
    *URLS,
    *FORMATS,
)
