"""What is reported of a plugin that raises an exception.

Errors of kubestow (`PluginError` and all others) are raised on purpose: their text is the message,
as upstream words it. Any other exception is a fault of the plugin. Its text alone (`'nope'`) does
not show the cause: the message also has its type and the place in the plugin, and the traceback is
logged.
"""

import logging
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Final, NamedTuple

from kubestow.errors import PluginError
from kubestow.framework.status import Status
from kubestow.logs import FIELDS

log = logging.getLogger(__name__)

_OURS: Final = "kubestow"
LOGGED_FAULTS_MAX: Final = 256


class _Fault(NamedTuple):
    plugin: str
    point: str
    place: str


class FaultLog:
    """Logs a traceback once for each plugin, extension point and place."""

    def __init__(self, faults_max: int = LOGGED_FAULTS_MAX) -> None:
        self._faults_max = faults_max
        # In the order they were logged; the oldest goes first.
        self._logged: dict[_Fault, None] = {}

    def note(self, error: Exception, plugin: str, point: str, place: str) -> None:
        fault = _Fault(plugin, point, place)
        if fault in self._logged:
            return
        if len(self._logged) >= self._faults_max:
            del self._logged[next(iter(self._logged))]
        self._logged[fault] = None
        fields = {"err": describe(error, place), "plugin": plugin, "point": point}
        log.error("A plugin raised an exception", exc_info=error, extra={FIELDS: fields})


_FAULTS: Final = FaultLog()


def fault_status(error: Exception, plugin: str, point: str, faults: FaultLog = _FAULTS) -> Status:
    """The status of an attempt in which a plugin raised this error at an extension point."""
    return Status.from_error(fault_error(error, plugin, point, faults))


def fault_error(error: Exception, plugin: str, point: str, faults: FaultLog = _FAULTS) -> Exception:
    """The error itself if it was raised on purpose; else one with type and place in its text."""
    if _root_of(type(error).__module__) == _OURS or isinstance(error, PluginError):
        return error
    place = place_of(error)
    faults.note(error, plugin, point, place)
    return PluginError(describe(error, place))


def describe(error: Exception, place: str) -> str:
    """For example `KeyError: 'nope' (acme_plugins/bugs.py:8)`."""
    name, text = type(error).__name__, str(error)
    return f"{name}: {text} ({place})" if text else f"{name} ({place})"


def place_of(error: Exception) -> str:
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
