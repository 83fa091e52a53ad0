"""Every function an expression may call (spec 08 B8), one file per library."""

from typing import Final

from kubestow.cel.functions import Overload
from kubestow.cel.library.formats import FORMATS
from kubestow.cel.library.lists import LISTS
from kubestow.cel.library.net import IPS, URLS
from kubestow.cel.library.optionals import OPTIONALS
from kubestow.cel.library.quantities import QUANTITIES
from kubestow.cel.library.regex import REGEX
from kubestow.cel.library.semvers import SEMVERS
from kubestow.cel.library.standard import STANDARD
from kubestow.cel.library.strings import STRINGS

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
