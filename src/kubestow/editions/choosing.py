"""The schedulers with plugins of v1.17 and v1.20: their parts and their plugins."""

from collections.abc import Mapping
from typing import Final

from kubestow.editions.rules import Edition
from kubestow.editions.v1_17.engine import FactoryV117
from kubestow.editions.v1_17.plugins import REGISTRY_117
from kubestow.editions.v1_20.engine.factory import FactoryV120
from kubestow.editions.v1_20.plugins.registry import REGISTRY_120

_EDITIONS: Final[Mapping[str, Edition]] = {
    "v1.17": Edition(FactoryV117, REGISTRY_117),
    "v1.20": Edition(FactoryV120, REGISTRY_120),
}


def edition_of(version: str) -> Edition:
    return _EDITIONS[version]
