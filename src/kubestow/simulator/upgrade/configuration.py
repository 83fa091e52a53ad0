"""Gates and configuration files that are refused by another version, or mean something else."""

from collections.abc import Iterator, Mapping, Sequence

from kubestow.config.defaults import complete_config
from kubestow.config.feature_gates import FeatureGates, parse_gates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions.edition import Edition, Gate
from kubestow.errors import ConfigError
from kubestow.simulator.upgrade.pair import EditionPair
from kubestow.simulator.upgrade.report import Effect, UpgradeFinding

_OPTION = "--feature-gates"
_REFUSED_GATES = 18
_BATCHING = 14


def gate_findings(before: FeatureGates, after: Edition) -> Iterator[UpgradeFinding]:
    """What becomes of the gates that are set, and which defaults differ."""
    for name, value in before.overrides.items():
        text = f"{name}={str(value).lower()}"
        where = f"{_OPTION} {text}"
        try:
            parse_gates((text,), after)
        except ConfigError as error:
            is_gone = name not in after.gates and name not in after.other_gates
            number = _REFUSED_GATES if is_gone else None
            yield UpgradeFinding(effect=Effect.REFUSED, where=where, text=str(error), change=number)
    for error in _usable(before.overrides, after).dependency_errors():
        yield UpgradeFinding(effect=Effect.REFUSED, where=_OPTION, text=error)
    for name, gate in after.gates.items():
        earlier = before.edition.gates.get(name)
        if earlier is None or name in before.overrides or earlier.default == gate.default:
            continue
        yield UpgradeFinding(
            effect=Effect.NOTE, where=f"gate {name}", text=_default_text(name, gate, earlier)
        )


def _default_text(name: str, gate: Gate, earlier: Gate) -> str:
    now, then = ("on", "off") if gate.default else ("off", "on")
    text = f"{now} by default, was {then}"
    if gate.locked:
        return f"{text}; it cannot be set"
    return f"{text}; {_OPTION}={name}={str(earlier.default).lower()} keeps it as it was"


def _usable(before: Mapping[str, bool], after: Edition) -> FeatureGates:
    """The gates that are set, without those that the other version refuses."""
    kept: dict[str, bool] = {}
    for name, value in before.items():
        try:
            FeatureGates({name: value}, after)
        except ConfigError:
            continue
        kept[name] = value
    return FeatureGates(kept, after)


def usable_gates(before: Mapping[str, bool], after: Edition) -> FeatureGates:
    """What the other version can be started with, of gates that are set: those that it refuses are
    left out, and those that are on without what they need are off."""
    gates = _usable(before, after)
    while errors := gates.dependency_errors():
        gates = gates.without(errors[0].partition(" ")[0])
    return gates


def config_findings(
    where: str, before: SchedulerConfig, after: SchedulerConfig
) -> Iterator[UpgradeFinding]:
    """What a configuration file that both versions accept means in another way."""
    for mine, other in zip(before.profiles, after.profiles, strict=True):
        arguments = {entry.name: entry.args for entry in mine.plugin_config}
        for entry in other.plugin_config:
            if entry.name in arguments and arguments[entry.name] != entry.args:
                yield UpgradeFinding(
                    effect=Effect.NOTE,
                    where=f"{where}, profile {mine.scheduler_name}",
                    text=f"the arguments of {entry.name} have other defaults: "
                    f"{_differing(arguments[entry.name], entry.args)}",
                )


def batching_findings(pair: EditionPair) -> Iterator[UpgradeFinding]:
    """Profiles in which equal pods are placed in batches; with the default one they are not."""
    older, newer = pair.older, pair.newer
    if older.config.extenders or not older.gates.enabled("OpportunisticBatching"):
        return
    for config in complete_config(older.config, older.gates).profiles:
        profile = older.scheduler.profiles[config.scheduler_name]
        if profile.signers is None:
            continue
        yield UpgradeFinding(
            effect=Effect.NOTE,
            where=f"profile {config.scheduler_name}",
            text="equal pods that follow each other are placed in batches: "
            f"{newer.gates.edition.version} scores the node again that the pod before got, "
            f"{older.gates.edition.version} searches all nodes if that one still fits",
            change=_BATCHING,
        )


def _differing(before: object, after: object) -> str:
    fields: Sequence[str] = getattr(after, "__struct_fields__", ())
    names = [name for name in fields if getattr(before, name, None) != getattr(after, name, None)]
    return ", ".join(names) or "all of them"
