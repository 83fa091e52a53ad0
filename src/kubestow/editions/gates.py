"""The feature gates of older versions that change how pods are placed.

Gates of the time that are not listed here are refused: they would have no effect.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kubestow.config.feature_gates import parse_gate_values
from kubestow.errors import ConfigError

EQUIVALENCE_CACHE: Final = "EnableEquivalenceClassCache"
DEFAULT_POD_TOPOLOGY_SPREAD: Final = "DefaultPodTopologySpread"

# Version → its gates and their defaults.
_GATES: Final[Mapping[str, Mapping[str, bool]]] = {
    "v1.9": {EQUIVALENCE_CACHE: False},
    "v1.17": {},
    "v1.20": {DEFAULT_POD_TOPOLOGY_SPREAD: True},
}


def parse_older_gates(version: str, texts: Iterable[str]) -> Mapping[str, bool]:
    """All gates of that version with their values; raises ConfigError for any other gate."""
    known = _GATES[version]
    values = parse_gate_values(texts)
    for name in values:
        if name not in known:
            raise ConfigError(
                f"unrecognized feature gate: {name}; with {version} it can be "
                f"{', '.join(known) or 'none'}"
            )
    return {**known, **values}
