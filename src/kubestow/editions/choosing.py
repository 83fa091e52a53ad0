"""Which rules an edition has. Each is imported when it is chosen."""

from kubestow.editions.edition import Edition, Version
from kubestow.editions.rules import CORE_RULES, Rules
from kubestow.errors import ConfigError


def rules_of(edition: Edition) -> Rules:
    """The rules of an edition; raises ConfigError if it has no plugins."""
    match edition.version:
        case Version.V1_37:
            from kubestow.editions.v1_37.rules import RULES_V137

            return RULES_V137
        case Version.V1_36:
            return CORE_RULES
        case Version.V1_20:
            from kubestow.editions.v1_20.rules import RULES_V120

            return RULES_V120
        case Version.V1_17:
            from kubestow.editions.v1_17.rules import RULES_V117

            return RULES_V117
        case Version.V1_9:
            raise ConfigError(f"{edition.version} has no plugins")
