"""The rules of v1.37: its parts and its plugins."""

from typing import Final

from kubestow.editions.rules import Rules
from kubestow.editions.v1_37.engine.factory import FactoryV137
from kubestow.editions.v1_37.plugins.registry import REGISTRY_137

RULES_V137: Final = Rules(FactoryV137, REGISTRY_137)
