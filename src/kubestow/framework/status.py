"""The outcome of a plugin call, an extension point or an attempt (spec 04 §2.1)."""

from enum import IntEnum
from typing import Final


class Code(IntEnum):
    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def label(self) -> str:
        """The name upstream prints, for metrics and messages."""
        return _LABELS[self]


_LABELS: Final = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}
_REJECTED: Final = frozenset(
    (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)
)


class Status:
    """An outcome: code, reasons for people, its error if any, and the plugin it came from.

    Immutable by convention; `with_plugin` and `with_reasons` return changed copies. Where a
    function returns `Status | None`, None means Success. Parts of a wrong type raise TypeError, so
    that the fault is reported where the status is made.
    """

    __slots__ = ("code", "error", "plugin", "reasons")

    def __init__(
        self, code: Code, *reasons: str, error: Exception | None = None, plugin: str = ""
    ) -> None:
        # The declared types are not trusted: plugins of users make statuses.
        if not isinstance(code, Code):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"code of a status of type {type(code).__name__}, expected a Code")
        for reason in reasons:
            if not isinstance(reason, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(
                    f"reason of a status of type {type(reason).__name__}, expected text"
                )
        if error is not None and not isinstance(error, Exception):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"error of a status of type {type(error).__name__}, expected an Exception"
            )
        self.code = code
        self.reasons = reasons
        self.error = error
        self.plugin = plugin

    @classmethod
    def unschedulable(cls, *reasons: str) -> "Status":
        return cls(Code.UNSCHEDULABLE, *reasons)

    @classmethod
    def unresolvable(cls, *reasons: str) -> "Status":
        """Unschedulable, and evicting pods would not change that."""
        return cls(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, *reasons)

    @classmethod
    def skip(cls) -> "Status":
        return _SKIP

    @classmethod
    def wait(cls, *reasons: str) -> "Status":
        return cls(Code.WAIT, *reasons)

    @classmethod
    def from_error(cls, error: Exception) -> "Status":
        return cls(Code.ERROR, error=error)

    @property
    def is_success(self) -> bool:
        return self.code == Code.SUCCESS

    @property
    def is_rejected(self) -> bool:
        return self.code in _REJECTED

    @property
    def all_reasons(self) -> tuple[str, ...]:
        """The reasons, with the text of the error in front when there is one."""
        return self.reasons if self.error is None else (str(self.error), *self.reasons)

    @property
    def message(self) -> str:
        return ", ".join(self.all_reasons)

    def as_error(self) -> Exception | None:
        """This status as an error; None for Success, Wait and Skip."""
        if self.code in (Code.SUCCESS, Code.WAIT, Code.SKIP):
            return None
        return self.error if self.error is not None else StatusText(self.message)

    def with_plugin(self, plugin: str) -> "Status":
        return Status(self.code, *self.reasons, error=self.error, plugin=plugin)

    def with_reasons(self, *more: str) -> "Status":
        return Status(self.code, *self.reasons, *more, error=self.error, plugin=self.plugin)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Status):
            return NotImplemented
        return (self.code, self.all_reasons, self.plugin) == (
            other.code,
            other.all_reasons,
            other.plugin,
        )

    def __hash__(self) -> int:
        return hash((self.code, self.all_reasons, self.plugin))

    def __repr__(self) -> str:
        plugin = f", plugin={self.plugin!r}" if self.plugin else ""
        return f"Status({self.code.label}, {self.message!r}{plugin})"


class StatusText(Exception):
    """The text of a status that had no error of its own."""


def wrapped_text(status: Status) -> str:
    """The text of a status inside of another error; one without an error as Go prints a nil."""
    error = status.as_error()
    return str(error) if error is not None else "%!w(<nil>)"


_SKIP: Final = Status(Code.SKIP)
SUCCESS: Final = Status(Code.SUCCESS)
