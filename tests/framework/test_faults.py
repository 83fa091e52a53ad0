"""Exceptions of plugins: type and place are in the message, the traceback is logged once."""

import logging
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kubestow.errors import CycleCancelledError, NotFoundError, PluginError
from kubestow.framework.answers import wrong_answer
from kubestow.framework.faults import FaultLog, fault_error, fault_status
from kubestow.framework.status import Code
from kubestow.index.devices.node_match import NodeSelectionError

BUGS = """\
import json
from acme_plugins.deeper import look_up

def missing(): return {}["nope"]
def silent(): raise NotImplementedError
def in_a_library(): return json.loads("{")
def below(): return look_up()
"""


@pytest.fixture
def bugs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    package = tmp_path / "acme_plugins"
    package.mkdir()
    (package / "__init__.py").write_text("def broken(): return 1 / 0\n")
    (package / "bugs.py").write_text(BUGS)
    (package / "deeper.py").write_text("\ndef look_up(): return (1, 2).index(3)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("acme_plugins", "acme_plugins.bugs", "acme_plugins.deeper"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import acme_plugins.bugs

    return acme_plugins.bugs


def error_of(module: ModuleType, function: str) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of several types
        getattr(module, function)()
    # Without the frame of this test.
    assert caught.value.__traceback__ is not None
    return caught.value.with_traceback(caught.value.__traceback__.tb_next)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        pytest.param("missing", "KeyError: 'nope' (acme_plugins/bugs.py:4)", id="type-and-place"),
        pytest.param("silent", "NotImplementedError (acme_plugins/bugs.py:5)", id="without-text"),
        pytest.param(
            "in_a_library",
            "JSONDecodeError: Expecting property name enclosed in double quotes: "
            "line 1 column 2 (char 1) (acme_plugins/bugs.py:6)",
            id="library",
        ),
        pytest.param(
            "below",
            "ValueError: tuple.index(x): x not in tuple (acme_plugins/deeper.py:2)",
            id="same-package",
        ),
    ],
)
def test_the_message_has_type_and_place(bugs: ModuleType, function: str, text: str) -> None:
    status = fault_status(error_of(bugs, function), "Bugs", "Filter", FaultLog())
    assert (status.code, status.message) == (Code.ERROR, text)


def test_a_package_is_shown_with_its_folder(bugs: ModuleType) -> None:
    error = error_of(sys.modules["acme_plugins"], "broken")
    text = "ZeroDivisionError: division by zero (acme_plugins/__init__.py:1)"
    assert str(fault_error(error, "Bugs", "Filter", FaultLog())) == text


@pytest.mark.parametrize(
    "error", [PluginError("gone"), NotFoundError('pods "a" not found'), NodeSelectionError("bad")]
)
def test_errors_raised_on_purpose_keep_their_text(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    assert fault_error(error, "Bugs", "Filter", FaultLog()) is error
    assert not caplog.records


def test_the_traceback_is_logged_once_per_plugin_point_and_place(
    bugs: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    faults = FaultLog()
    for plugin, point, function in [
        ("A", "Filter", "missing"),
        ("A", "Filter", "missing"),
        ("A", "Score", "missing"),
        ("B", "Filter", "missing"),
        ("A", "Filter", "silent"),
    ]:
        fault_status(error_of(bugs, function), plugin, point, faults)
    assert len(caplog.records) == 4
    assert {record.levelno for record in caplog.records} == {logging.ERROR}
    assert 'return {}["nope"]' in caplog.text


def test_tracebacks_are_remembered_up_to_a_limit(
    bugs: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    faults = FaultLog(faults_max=2)
    for plugin in "ABCA":
        fault_status(error_of(bugs, "missing"), plugin, "Filter", faults)
    assert len(caplog.records) == 4
    fault_status(error_of(bugs, "missing"), "A", "Filter", faults)
    assert len(caplog.records) == 4


def test_a_wrong_answer_is_logged_once_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    faults = FaultLog()
    error = wrong_answer("A", "unreserve", True, "None")
    for _ in range(2):
        assert fault_error(error, "A", "Unreserve", faults) is error
    assert [record.exc_info for record in caplog.records] == [None]


def test_an_error_whose_text_cannot_be_made_is_described(caplog: pytest.LogCaptureFixture) -> None:
    class WithoutText(PluginError):
        def __str__(self) -> str:
            raise ValueError

    text = str(fault_error(WithoutText(), "A", "Filter", FaultLog()))
    assert text == "WithoutText (unknown place)"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(2), CycleCancelledError()])
def test_what_ends_the_process_is_passed_on(error: BaseException) -> None:
    with pytest.raises(type(error)):
        fault_error(error, "A", "Filter", FaultLog())
