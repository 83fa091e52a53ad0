"""The rules of v1.20: its parts and its plugins."""

from typing import Final

from kubestow.editions.rules import Rules
from kubestow.editions.v1_20.engine.factory import FactoryV120
from kubestow.editions.v1_20.plugins.registry import REGISTRY_120

RULES_V120: Final = Rules(FactoryV120, REGISTRY_120)
