"""What log lines look like (spec 09 §10)."""

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from kubestow.logs import ObjectName, fail, inform, is_printed, level_of, warn
from kubestow.service.logging import LogSettings, TextFormatter, configure_logging, text_value

LOG = logging.getLogger("kubestow.tests.printing")


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def lines_of(settings: LogSettings) -> io.StringIO:
    stream = io.StringIO()
    configure_logging(settings, stderr=stream)
    return stream


def test_text_has_header_quoted_message_and_fields() -> None:
    stream = lines_of(LogSettings(verbosity=2))
    inform(LOG, "Successfully bound pod to node", v=2, pod=ObjectName("ns", "a"), evaluatedNodes=5)
    assert re.fullmatch(
        r"I\d{4} \d\d:\d\d:\d\d\.\d{6} {1,7}\d+ test_logging\.py:\d+\] "
        r'"Successfully bound pod to node" pod="ns/a" evaluatedNodes=5\n',
        stream.getvalue(),
    )


@pytest.mark.parametrize("format", ["text", "json"])
def test_passwords_in_addresses_are_not_printed(format: str) -> None:
    stream = lines_of(LogSettings(format=format))
    fail(LOG, "failed", ValueError("https://me:hunter2@host"), url="http://me:hunter2@host/a")
    LOG.warning("plain %s", "https://hunter2@host")
    try:
        raise ValueError("https://me:hunter2@host")
    except ValueError:
        LOG.exception("traceback")
    assert stream.getvalue().count("REDACTED@host") == 5
    assert "hunter2" not in stream.getvalue()


def test_plain_lines_are_not_quoted() -> None:
    stream = lines_of(LogSettings())
    LOG.info('FLAG: --v="%d"', 2)
    assert stream.getvalue().endswith('] FLAG: --v="2"\n')


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(True, "true", id="bool"),
        pytest.param(7, "7", id="int"),
        pytest.param(0.5, "0.5", id="float"),
        pytest.param(None, "<nil>", id="nothing"),
        pytest.param('a "b"', '"a \\"b\\""', id="text"),
        pytest.param(ObjectName("", "n1"), '"n1"', id="no-namespace"),
        pytest.param(ValueError("x"), '"x"', id="error"),
        pytest.param(["a", "b"], '["a","b"]', id="list"),
        pytest.param("a\nb", "<\n\ta\n\tb\n >", id="several-lines"),
        pytest.param("a\nb\n", "<\n\ta\n\tb\n >", id="ends-with-a-line-end"),
    ],
)
def test_values_in_text(value: object, text: str) -> None:
    assert text_value(value) == text


@pytest.mark.parametrize(
    ("log_line", "letter"),
    [(inform, "I"), (warn, "W"), (fail, "E")],
    ids=["info", "warning", "error"],
)
def test_the_first_letter_is_the_severity(log_line: object, letter: str) -> None:
    stream = lines_of(LogSettings())
    log_line(LOG, "x")  # type: ignore[operator]
    assert stream.getvalue()[0] == letter


def test_errors_show_the_error_first() -> None:
    stream = lines_of(LogSettings())
    fail(LOG, "Error scheduling pod; retrying", ValueError("boom"), pod=ObjectName("ns", "a"))
    assert stream.getvalue().endswith('"Error scheduling pod; retrying" err="boom" pod="ns/a"\n')


def test_json_has_one_object_per_line() -> None:
    stream = lines_of(LogSettings(format="json", verbosity=2))
    inform(LOG, "bound", v=2, pod=ObjectName("ns", "a"), node="n1", count=3)
    fail(LOG, "failed", ValueError("boom"))
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert isinstance(first.pop("ts"), float)
    assert re.fullmatch(r"test_logging\.py:\d+", first.pop("caller"))
    assert first == {
        "msg": "bound",
        "v": 2,
        "pod": {"name": "a", "namespace": "ns"},
        "node": "n1",
        "count": 3,
    }
    assert "v" not in second
    assert second["err"] == "boom"


@pytest.mark.parametrize(("verbosity", "printed"), [(0, [0]), (2, [0, 2]), (10, [0, 2, 10])])
def test_verbosity_decides_what_is_printed(verbosity: int, printed: list[int]) -> None:
    stream = lines_of(LogSettings(verbosity=verbosity))
    for level in (0, 2, 10):
        inform(LOG, f"at {level}", v=level)
    assert [
        int(line.rpartition(" ")[2].rstrip('"')) for line in stream.getvalue().splitlines()
    ] == (printed)
    assert [level for level in (0, 2, 10) if is_printed(LOG, level)] == printed


def test_verbosity_can_change_while_running() -> None:
    stream = io.StringIO()
    verbosity = configure_logging(LogSettings(), stderr=stream)
    inform(LOG, "quiet", v=4)
    verbosity.set(4)
    inform(LOG, "loud", v=4)
    assert "loud" in stream.getvalue()
    assert "quiet" not in stream.getvalue()


def test_modules_may_have_a_verbosity_of_their_own() -> None:
    stream = lines_of(LogSettings(vmodule="test_log*=4,other=9"))
    inform(LOG, "here", v=4)
    inform(LOG, "too fine", v=5)
    LOG.handle(LOG.makeRecord("x", level_of(1), "elsewhere.py", 1, "elsewhere", (), None))
    assert "here" in stream.getvalue()
    assert len(stream.getvalue().splitlines()) == 1


def test_split_streams_keep_errors_apart() -> None:
    out, err = io.StringIO(), io.StringIO()
    configure_logging(LogSettings(split_stream=True), stdout=out, stderr=err)
    inform(LOG, "fine")
    fail(LOG, "broken")
    assert "fine" in out.getvalue()
    assert "broken" not in out.getvalue()
    assert "broken" in err.getvalue()
    assert "fine" not in err.getvalue()


def test_tracebacks_follow_the_line() -> None:
    text, structured = lines_of(LogSettings()), None
    try:
        raise ValueError("boom")
    except ValueError:
        LOG.exception("it broke")
        structured = lines_of(LogSettings(format="json"))
        LOG.exception("it broke")
    assert "ValueError: boom" in text.getvalue()
    assert "ValueError: boom" in json.loads(structured.getvalue())["stacktrace"]


def test_a_plain_line_has_no_escape_sequences() -> None:
    record = logging.LogRecord("x", logging.WARNING, "a.py", 1, "event %s", ("w\x1b[2J\r",), None)
    assert TextFormatter().format(record).endswith(r"] event w\x1b[2J\r")
