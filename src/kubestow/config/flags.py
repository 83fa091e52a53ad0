"""How a command line is read, and what it overrides in a configuration (spec 09 §2).

Reading follows upstream's flag library: `--flag=value` and `--flag value`, switches without a
value, `_` for `-`, `-v2`; the first error ends it.

Not here: which flags there are (`flag_table`), what they mean together (`service.options`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar, cast

import msgspec

from kubestow.config.flag import Flag, FlagValue, format_value
from kubestow.config.flag_table import FLAGS
from kubestow.config.scalars import Duration
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import FlagError

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

_BY_NAME: Final[Mapping[str, Flag]] = {flag.name: flag for flag in FLAGS}
_BY_SHORTHAND: Final[Mapping[str, Flag]] = {flag.shorthand: flag for flag in FLAGS}


class ParsedFlags(msgspec.Struct, frozen=True):
    """The value of every flag, and which of them were given.

    A flag counts as given when it is on the command line, even with its default.
    """

    values: Mapping[str, FlagValue]
    given: frozenset[str]
    arguments: tuple[str, ...] = ()  # neither flags nor their values

    def text(self, name: str) -> str:
        return self._value(name, str)

    def switch(self, name: str) -> bool:
        return self._value(name, bool)

    def number(self, name: str) -> int:
        return self._value(name, int)

    def duration(self, name: str) -> Duration:
        return self._value(name, Duration)

    def texts(self, name: str) -> tuple[str, ...]:
        return cast(tuple[str, ...], self._value(name, tuple))

    def pairs(self, name: str) -> dict[str, str]:
        return cast(dict[str, str], self._value(name, dict))

    def lines(self) -> Iterator[str]:
        """Every flag as `name="value"`, by name; for the log and `/flagz`."""
        for name in sorted(self.values):
            yield f'{name}="{format_value(self.values[name])}"'

    def _value(self, name: str, kind: type[T]) -> T:
        value = self.values[name]
        assert isinstance(value, kind), name
        return value


def parse_flags(arguments: Sequence[str]) -> ParsedFlags:
    """Read a command line (without the program's name); raises FlagError."""
    given: dict[str, FlagValue] = {}
    others: list[str] = []
    rest = list(reversed(arguments))  # the next one is at the end
    while rest:
        argument = rest.pop()
        if argument == "--":
            others += reversed(rest)
            break
        if argument.startswith("--"):
            _take_long(argument, rest, given)
        elif argument.startswith("-") and argument != "-":
            _take_short(argument, rest, given)
        else:
            others.append(argument)
    values = {flag.name: flag.default for flag in FLAGS} | given
    return ParsedFlags(values, frozenset(given), tuple(others))


def _take_long(argument: str, rest: list[str], given: dict[str, FlagValue]) -> None:
    name, separator, value = argument.removeprefix("--").partition("=")
    if not name or name.startswith("-"):
        raise FlagError(f"bad flag syntax: {argument}")
    flag = _BY_NAME.get(name.replace("_", "-"))
    if flag is None:
        raise FlagError(f"unknown flag: --{name}")
    if not separator:
        value = _value_of(flag, rest, f"--{name}")
    _set(flag, value, given)


def _take_short(argument: str, rest: list[str], given: dict[str, FlagValue]) -> None:
    letters = argument.removeprefix("-")
    while letters:
        letter, letters = letters[0], letters[1:]
        flag = _BY_SHORTHAND.get(letter)
        if flag is None:
            raise FlagError(f"unknown shorthand flag: {letter!r} in {argument}")
        if letters.startswith("="):
            value, letters = letters[1:], ""
        elif flag.kind.bare:
            value = flag.kind.bare  # a switch: what follows are other flags
        elif letters:
            value, letters = letters, ""
        else:
            value = _value_of(flag, rest, f"{letter!r} in {argument}")
        _set(flag, value, given)


def _value_of(flag: Flag, rest: list[str], called: str) -> str:
    if flag.kind.bare:
        return flag.kind.bare
    if not rest:
        raise FlagError(f"flag needs an argument: {called}")
    return rest.pop()


def _set(flag: Flag, text: str, given: dict[str, FlagValue]) -> None:
    try:
        given[flag.name] = flag.kind.parse(text, given.get(flag.name))
    except ValueError as error:
        called = f"-{flag.shorthand}, --{flag.name}" if flag.shorthand else f"--{flag.name}"
        raise FlagError(f'invalid argument "{text}" for "{called}" flag: {error}') from error


# --- precedence ---

# Flag → field of the configuration.
_LEADER_ELECTION_FIELDS: Final = {
    "leader-elect": "leader_elect",
    "leader-elect-lease-duration": "lease_duration",
    "leader-elect-renew-deadline": "renew_deadline",
    "leader-elect-retry-period": "retry_period",
    "leader-elect-resource-lock": "resource_lock",
    "leader-elect-resource-name": "resource_name",
    "leader-elect-resource-namespace": "resource_namespace",
}
_CONNECTION_FIELDS: Final = {
    "kubeconfig": "kubeconfig",
    "kube-api-content-type": "content_type",
    "kube-api-qps": "qps",
    "kube-api-burst": "burst",
}
_PROFILING_FIELDS: Final = {
    "profiling": "enable_profiling",
    "contention-profiling": "enable_contention_profiling",
}


def apply_flags(
    config: SchedulerConfig, flags: ParsedFlags, *, is_from_file: bool
) -> SchedulerConfig:
    """The configuration with the flags of the command line applied (spec 09 §2.1)."""
    election = _overridden(config.leader_election, _LEADER_ELECTION_FIELDS, flags)
    config = msgspec.structs.replace(config, leader_election=election)
    if is_from_file:
        return config  # The deprecated flags count only without a file.
    connection = _overridden(config.client_connection, _CONNECTION_FIELDS, flags)
    config = msgspec.structs.replace(config, client_connection=connection)
    return _overridden(config, _PROFILING_FIELDS, flags)


def _overridden(struct: S, fields: Mapping[str, str], flags: ParsedFlags) -> S:
    changes = {field: flags.values[flag] for flag, field in fields.items() if flag in flags.given}
    return msgspec.structs.replace(struct, **changes) if changes else struct
