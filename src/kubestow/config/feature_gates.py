"""The feature gates of a scheduler: those of its edition, and their values (spec 09 §12, 04 §1).

A locked gate accepts no other value than its default. `AllAlpha` and `AllBeta` set every gate of
their stage that is not set by name. Gates of other components are accepted and have no effect.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubestow.config.scalars import parse_bool
from kubestow.editions import CORE
from kubestow.editions.edition import Edition, Stage
from kubestow.errors import ConfigError, MissingFeatureError

_STAGE_GATES: Final = {"AllAlpha": Stage.ALPHA, "AllBeta": Stage.BETA}


class FeatureGates:
    """Which gates of an edition are on. Immutable."""

    def __init__(
        self, overrides: Mapping[str, bool] | None = None, edition: Edition = CORE
    ) -> None:
        """Raises ConfigError for unknown gates and for other values of locked ones."""
        overrides = dict(overrides or {})
        self.edition: Final = edition
        # As they were set.
        self.overrides: Final = overrides
        for name, value in overrides.items():
            _check(name, value, edition)
        gates = edition.gates
        self._enabled = {name: gate.default for name, gate in gates.items()}
        for special, stage in _STAGE_GATES.items():
            if special in overrides:
                named = (name for name, gate in gates.items() if gate.stage == stage)
                self._enabled |= dict.fromkeys(named, overrides[special])
        self._enabled |= {name: on for name, on in overrides.items() if name in gates}
        self._enabled |= dict.fromkeys(edition.missing_gates, False)
        self._merged = {name: self._enabled[gate] for name, gate in edition.merged_gates.items()}

    @property
    def without_effect(self) -> list[str]:
        """The gates that were set and that no rule of a scheduler reads."""
        return [name for name in self.overrides if name in self.edition.other_gates]

    def enabled(self, name: str) -> bool:
        """Whether a gate is on; of a gate that went into another one, whether that one is."""
        value = self._enabled.get(name)
        return self._merged[name] if value is None else value

    def has(self, name: str) -> bool:
        """Whether the edition has the gate, and it is on: for a gate of a later edition."""
        return self._enabled.get(name, False)

    def values(self) -> dict[str, bool]:
        """All gates that a scheduler reads."""
        return dict(self._enabled)

    def without(self, name: str) -> "FeatureGates":
        """A copy of the gates with this one off."""
        return FeatureGates({**self._enabled, name: False}, self.edition)

    def dependency_errors(self) -> list[str]:
        """Gates that are on though a gate they need is off."""
        errors: list[str] = []
        for name, gate in self.edition.gates.items():
            missing = [needed for needed in gate.needs if not self._enabled[needed]]
            if self._enabled[name] and missing:
                rule = "is enabled, but depends on features that are disabled"
                errors.append(f"{name} {rule}: [{' '.join(missing)}]")
        return errors

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FeatureGates)
            and self.edition is other.edition
            and self._enabled == other._enabled
        )

    def __hash__(self) -> int:
        return hash(frozenset(self._enabled.items()))


def parse_gates(texts: Iterable[str], edition: Edition = CORE) -> FeatureGates:
    """The gates of `--feature-gates`; raises ConfigError."""
    return FeatureGates(_parse_values(texts), edition)


def _parse_values(texts: Iterable[str]) -> dict[str, bool]:
    """What `--feature-gates` sets: `[component:]Name=bool,…`, repeatable; the last value of a name
    counts. Raises ConfigError; names are not checked."""
    overrides: dict[str, bool] = {}
    prefixes: set[str] = set()
    for component, entry in _entries(texts):
        prefixes.add(component)
        if component not in ("", "kube"):
            raise ConfigError(f"component not registered: {component}")
        name, separator, value = (part.strip() for part in entry.partition("="))
        if not separator:
            raise ConfigError(f"missing bool value for {name}")
        try:
            overrides[name] = parse_bool(value)
        except ValueError as error:
            raise ConfigError(f"invalid value of {name}={value}, err: {error}") from error
    if len(prefixes) > 1:
        raise ConfigError(
            "set kube feature gates with default empty prefix or kube: prefix consistently, "
            "do not mix use"
        )
    return overrides


def _entries(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Component and `Name=bool` of every entry."""
    for text in texts:
        for entry in text.split(","):
            component, separator, setting = entry.strip().partition(":")
            if separator:
                yield component.strip(), setting.strip()
            elif component:
                yield "", component


def _check(name: str, value: bool, edition: Edition) -> None:
    gate = edition.gates.get(name) or edition.other_gates.get(name)
    if gate is None:
        # An edition without gates of other components has few; they are named.
        known = ", ".join(edition.gates) or "none"
        rest = "" if edition.other_gates else f"; with {edition.version} it can be {known}"
        raise ConfigError(f"unrecognized feature gate: {name}{rest}")
    if value and name in edition.missing_gates:
        raise MissingFeatureError(
            f"cannot set feature gate {name} to true: kubestow does not have what it switches on "
            f"in {edition.version}; leave it out"
        )
    if gate.locked and value != gate.default:
        raise ConfigError(
            f"cannot set feature gate {name} to {str(value).lower()}, "
            f"feature is locked to {str(gate.default).lower()}"
        )


DEFAULT_GATES: Final = FeatureGates()


def has_binding_conditions(gates: FeatureGates) -> bool:
    """Binding conditions need the gate of the device statuses that they are reported in."""
    return gates.enabled("DRADeviceBindingConditions") and gates.enabled(
        "DRAResourceClaimDeviceStatus"
    )
