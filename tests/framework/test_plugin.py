"""Numbers for statuses whose texts are not known beforehand."""

from kubestow.errors import PluginError
from kubestow.framework.plugin import StatusCodes
from kubestow.framework.status import SUCCESS, Code, Status


def test_passing_is_zero() -> None:
    codes = StatusCodes()
    assert codes.code_of(None) == 0
    assert codes.code_of(SUCCESS) == 0


def test_equal_statuses_share_a_number() -> None:
    codes = StatusCodes()
    first = codes.code_of(Status.unschedulable("full"))
    assert codes.code_of(Status.unschedulable("full")) == first > 0
    other = codes.code_of(Status.unresolvable("full"))
    assert other not in (0, first)
    assert codes.status_of(first) == Status.unschedulable("full")
    assert codes.status_of(other) == Status.unresolvable("full")


def test_what_is_no_rejection_is_negative() -> None:
    codes = StatusCodes()
    statuses = [Status.from_error(PluginError("x")), Status.wait("y"), Status.skip()]
    numbers = [codes.code_of(status) for status in statuses]
    assert all(number < 0 for number in numbers)
    assert len(set(numbers)) == 3
    assert [codes.status_of(number) for number in numbers] == statuses
    assert codes.code_of(Status(Code.PENDING, "later")) > 0
