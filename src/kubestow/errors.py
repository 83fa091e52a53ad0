"""Every exception of kubestow, as one family.

    KubestowError
    ├── InputError            user input that cannot be used
    │   ├── DecodeError       an object or file that does not decode
    │   └── ConfigError       a configuration that does not make sense
    │       └── FlagError     a command line that does not parse
    ├── ApiError              the API server refused (status code, reason, message)
    │   ├── NotFoundError     404
    │   ├── ConflictError     409: stale resource version, or it exists already
    │   ├── InvalidError      422: the object does not pass validation
    │   ├── GoneError         410: the version asked for is too old
    │   └── UnreachableError  no response: connection refused, lost, or timed out
    ├── PluginError           a plugin could not do its work; becomes a status of code Error
    │   ├── WrongAnswerError  a plugin returned something its method may not return
    │   └── BudgetSpentError  an attempt took longer than its budget
    ├── SetAsideError         no error: an attempt is interrupted for other pods, and goes on later
    ├── ExtenderError         an extender gave no response, an unreadable one, or an error
    ├── CacheError            an operation the cache refuses, with the text of the specification
    │   └── CacheCorruptedError   cache and cluster contradict each other: the process must end
    └── QueueError            an operation the queue refuses, likewise

Not of this family are CycleCancelledError, a CancelledError: the process ends; and InputWarning, a
warning to scripts.

"This pod fits nowhere" is no exception but a `Status` or a `Decision`.
"""

import asyncio
from concurrent.futures import Future
from typing import Any, Literal

UnreachableCause = Literal["refused", "broken off", "other"]


class KubestowError(Exception):
    """Base of all errors raised on purpose."""


class InputError(KubestowError):
    """User input that cannot be used; the message says what, where and what to do."""

    # The field of a form that is wrong, where the input is one.
    where = ""


class DecodeError(InputError):
    """An object or file that does not decode; the message names file, object, field and value."""


class InputWarning(UserWarning):
    """Input of a script of which parts are left out."""


class ConfigError(InputError):
    """A configuration that does not make sense."""


class MissingFeatureError(ConfigError):
    """A feature gate of an edition whose rules this version does not have."""


class FlagError(ConfigError):
    """A command line that does not parse."""


class ApiError(KubestowError):
    """The API server refused a request."""

    code = 500
    reason = "InternalError"
    # One text per invalid field, where the refusal is about fields.
    causes: tuple[str, ...] = ()
    # The object, where the refusal is about one; the kind with its group: `Deployment.apps`.
    kind = ""
    name = ""

    def __init__(self, message: str, *, code: int | None = None, reason: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        if reason is not None:
            self.reason = reason

    @property
    def is_unclear(self) -> bool:
        """Whether the request may have been carried out in spite of the error."""
        return self.code >= 500


class NotFoundError(ApiError):
    code = 404
    reason = "NotFound"


class ConflictError(ApiError):
    code = 409
    reason = "Conflict"

    @property
    def is_replaced(self) -> bool:
        """Whether the object has another UID than the request names: the one meant is gone."""
        return "UID in precondition" in str(self)


class InvalidError(ApiError):
    code = 422
    reason = "Invalid"


class GoneError(ApiError):
    code = 410
    reason = "Expired"


class UnreachableError(ApiError):
    """No response. Unless the connection was refused, the request may have been carried out."""

    code = 503
    reason = "Unreachable"

    def __init__(self, message: str, *, cause: UnreachableCause = "other") -> None:
        super().__init__(message)
        self.cause = cause

    @property
    def is_unclear(self) -> bool:
        return self.cause != "refused"


class PluginError(KubestowError):
    """A plugin could not do its work. The framework turns it into a status of code Error."""


class WrongAnswerError(PluginError):
    """A plugin returned something that its method may not return; the message names both."""


class BudgetSpentError(PluginError):
    """An attempt took longer than its budget; the message names the slowest plugin call."""


class SetAsideError(KubestowError):
    """Interrupts an attempt that takes long; it is repeated after other pods were served.

    spent_s    what the attempt has taken so far
    awaited    work in another thread after which it can go on, or None
    in_turns   what it found is not kept, so it has to be repeated in turns with the event loop
    """

    def __init__(
        self, spent_s: float, awaited: "Future[Any] | None" = None, *, in_turns: bool = False
    ) -> None:
        super().__init__("the attempt was set aside")
        self.spent_s = spent_s
        self.awaited = awaited
        self.in_turns = in_turns


class CycleCancelledError(asyncio.CancelledError):
    """Ends a scheduling cycle that waits: the process ends, so it must not come to a decision."""


class ExtenderError(KubestowError):
    """An extender failed. Unless it is ignorable, its caller fails too (spec 04 §13)."""


class CacheError(KubestowError):
    """The cache refuses an operation (spec 03 §3.1)."""


class CacheCorruptedError(CacheError):
    """Cache and cluster contradict each other; going on would place pods wrongly (spec 03 §3.1)."""


class QueueError(KubestowError):
    """The queue refuses an operation (spec 02 §9)."""
