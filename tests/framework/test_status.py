"""What an outcome says of itself (spec 04 §2.1)."""

import pytest

from kubestow.errors import PluginError
from kubestow.framework.status import SUCCESS, Code, Status


@pytest.mark.parametrize(
    ("code", "number", "label", "is_rejected"),
    [
        (Code.SUCCESS, 0, "Success", False),
        (Code.ERROR, 1, "Error", False),
        (Code.UNSCHEDULABLE, 2, "Unschedulable", True),
        (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, 3, "UnschedulableAndUnresolvable", True),
        (Code.WAIT, 4, "Wait", False),
        (Code.SKIP, 5, "Skip", False),
        (Code.PENDING, 6, "Pending", True),
    ],
)
def test_codes(code: Code, number: int, label: str, is_rejected: bool) -> None:
    status = Status(code)
    assert (int(code), code.label) == (number, label)
    assert status.is_rejected == is_rejected
    assert status.is_success == (code is Code.SUCCESS)


def test_2_10_7_the_error_comes_before_the_reasons() -> None:
    status = Status(Code.UNSCHEDULABLE, "a", "b", error=PluginError("e"))
    assert status.all_reasons == ("e", "a", "b")
    assert status.message == "e, a, b"
    assert str(status.as_error()) == "e"


def test_without_an_error_the_message_is_one() -> None:
    assert str(Status.unschedulable("a", "b").as_error()) == "a, b"
    assert str(Status(Code.ERROR).as_error()) == ""


@pytest.mark.parametrize("code", [Code.SUCCESS, Code.WAIT, Code.SKIP])
def test_some_codes_are_no_error(code: Code) -> None:
    assert Status(code, "text", error=PluginError("e")).as_error() is None


def test_an_exception_as_a_status() -> None:
    error = PluginError("boom")
    status = Status.from_error(error)
    assert (status.code, status.error, status.reasons) == (Code.ERROR, error, ())
    assert status.message == "boom"


def test_changed_copies_leave_the_original_alone() -> None:
    status = Status.wait("a")
    named = status.with_plugin("P").with_reasons("b")
    assert (named.plugin, named.reasons) == ("P", ("a", "b"))
    assert (status.plugin, status.reasons) == ("", ("a",))


def test_equality_is_by_code_words_and_plugin() -> None:
    assert Status.unschedulable("x") == Status(Code.UNSCHEDULABLE, error=PluginError("x"))
    assert hash(Status.unschedulable("x")) == hash(Status.unschedulable("x"))
    assert Status.unschedulable("x") != Status.unresolvable("x")
    assert Status.unschedulable("x") != Status.unschedulable("x").with_plugin("P")
    assert Status(Code.SUCCESS) == SUCCESS
    assert SUCCESS != "Success"
    assert repr(Status.unschedulable("x").with_plugin("P")) == (
        "Status(Unschedulable, 'x', plugin='P')"
    )
