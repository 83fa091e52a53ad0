"""The rules of v1.17: its parts and its plugins."""

from typing import Final

from kubestow.editions.rules import Rules
from kubestow.editions.v1_17.engine import FactoryV117
from kubestow.editions.v1_17.plugins import REGISTRY_117

RULES_V117: Final = Rules(FactoryV117, REGISTRY_117)
