"""What is reported of a plugin that raises an exception, or returns a wrong answer.

Errors of kubestow (`PluginError` and all others) are raised on purpose: their text is the message,
as upstream words it. Any other exception is a fault of the plugin. Its text alone (`'nope'`) does
not show the cause: the message also has its type and the place in the plugin, and the traceback is
logged.

A plugin may raise anything, `CancelledError` included: guards catch BaseException and call one of
the functions here, which pass on what ends the process.
"""

import asyncio
import logging
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Final, NamedTuple

from kubestow.errors import CycleCancelledError, PluginError, SetAsideError, WrongAnswerError
from kubestow.framework.status import Status
from kubestow.logs import FIELDS

log = logging.getLogger(__name__)

_OURS: Final = "kubestow"
_RAISED: Final = "A plugin raised an exception"
_ANSWERED: Final = "A plugin returned a wrong answer"
_UNGUARDED: Final = "An exception ended an attempt"
LOGGED_FAULTS_MAX: Final = 256

# What an exception has ended, for `attempt_fault`.
SCHEDULING_CYCLE: Final = "scheduling cycle"
BINDING_CYCLE: Final = "binding cycle"


class _Fault(NamedTuple):
    plugin: str
    point: str
    place: str


class FaultLog:
    """Logs a fault once for each plugin, extension point and place."""

    def __init__(self, faults_max: int = LOGGED_FAULTS_MAX) -> None:
        self._faults_max = faults_max
        # In the order they were logged; the oldest goes first.
        self._logged: dict[_Fault, None] = {}

    def note_exception(
        self, error: BaseException, plugin: str, point: str, message: str = _RAISED
    ) -> str:
        """Log the traceback; the text of the fault, with its type and place."""
        place = place_of(error)
        text = describe(error, place)
        self._note(_Fault(plugin, point, place), message, text, error)
        return text

    def note_answer(self, error: WrongAnswerError, plugin: str, point: str) -> None:
        self._note(_Fault(plugin, point, ""), _ANSWERED, str(error), None)

    def _note(self, fault: _Fault, message: str, text: str, error: BaseException | None) -> None:
        if fault in self._logged:
            return
        if len(self._logged) >= self._faults_max:
            del self._logged[next(iter(self._logged))]
        self._logged[fault] = None
        fields = {"err": text, "plugin": fault.plugin, "point": fault.point}
        log.error(message, exc_info=error, extra={FIELDS: fields})


_FAULTS: Final = FaultLog()


def fault_status(
    error: BaseException, plugin: str, point: str, faults: FaultLog = _FAULTS
) -> Status:
    """The status of an attempt in which a plugin raised this error at an extension point."""
    return Status.from_error(fault_error(error, plugin, point, faults))


def fault_error(
    error: BaseException, plugin: str, point: str, faults: FaultLog = _FAULTS
) -> Exception:
    """The error itself if it was raised on purpose; else one with type and place in its text."""
    pass_on_exit(error)
    if isinstance(error, WrongAnswerError):
        faults.note_answer(error, plugin, point)
        return error
    if isinstance(error, Exception) and _is_on_purpose(error):
        return error
    return PluginError(faults.note_exception(error, plugin, point))


def attempt_fault(error: BaseException, cycle: str, faults: FaultLog = _FAULTS) -> Status:
    """The status of an attempt that an exception ended outside of the guarded plugin calls, in its
    SCHEDULING_CYCLE or its BINDING_CYCLE."""
    pass_on_exit(error)
    text = faults.note_exception(error, "", cycle, _UNGUARDED)
    return Status.from_error(PluginError(f"{cycle}: {text}"))


def pass_on_exit(error: BaseException) -> None:
    """Raise again what ends the process, also from a plugin, and what sets the attempt aside."""
    if isinstance(error, KeyboardInterrupt | SystemExit | CycleCancelledError | SetAsideError):
        raise error


def is_cancellation(error: BaseException) -> bool:
    """Whether the running task was cancelled; else a CancelledError in it is a plugin's own."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _is_on_purpose(error: Exception) -> bool:
    if _root_of(type(error).__module__) == _OURS:
        return True
    return isinstance(error, PluginError) and _text_of(error) is not None


def describe(error: BaseException, place: str) -> str:
    """For example `KeyError: 'nope' (acme_plugins/bugs.py:8)`."""
    name, text = type(error).__name__, _text_of(error)
    return f"{name}: {text} ({place})" if text else f"{name} ({place})"


def _text_of(error: BaseException) -> str | None:
    """The message; None where the class of the error fails to make it."""
    try:
        return str(error)
    except Exception:  # Type and place are reported in any case.
        return None


def place_of(error: BaseException) -> str:
    """File and line of the plugin where the error was raised, or from where it called on.

    The first frame outside of kubestow is the plugin's; the last frame of the same package is the
    place, since below it there is only the code of a library. A plugin of kubestow's own has none.
    """
    frames = list(walk_tb(error.__traceback__))
    if not frames:
        return "unknown place"
    roots = [_root_of(_module_of(frame)) for frame, _ in frames]
    plugin_root = next((root for root in roots if root != _OURS), _OURS)
    last = max(index for index, root in enumerate(roots) if root == plugin_root)
    frame, line = frames[last]
    return f"{_file_of(frame)}:{line}"


def _file_of(frame: FrameType) -> str:
    """The file, with as many folders as the module has packages."""
    path = Path(frame.f_code.co_filename)
    count = _module_of(frame).count(".") + 1 + (path.stem == "__init__")
    return "/".join(path.parts[-count:])


def _module_of(frame: FrameType) -> str:
    return frame.f_globals.get("__name__", "")


def _root_of(module_name: str) -> str:
    return module_name.partition(".")[0]
