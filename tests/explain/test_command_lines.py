"""Commands on several lines do what they do on one."""

import shlex

import pytest

from kubestow.explain.command_lines import command_lines

COMMAND = (
    "kubectl get job reports -n default -o json | kubectl patch --local -f - --type=json"
    """ -p '[{"op":"add","path":"/a","value":"two words"}]' -o json | kubectl replace -f -"""
)


def test_without_a_width_a_command_is_one_line() -> None:
    assert command_lines(COMMAND, "  ", None) == [f"  $ {COMMAND}"]
    assert command_lines("kubectl get pods", "  ", 20) == ["  $ kubectl get pods"]


@pytest.mark.parametrize("width", [20, 40, 60, 80])
def test_a_shell_reads_the_same_command(width: int) -> None:
    lines = command_lines(COMMAND, "  ", width)
    assert len(lines) > 1
    assert all(line.endswith(" \\") for line in lines[:-1])
    text = "\n".join(lines).removeprefix("  $ ")
    assert shlex.split(text.replace("\\\n", "")) == shlex.split(COMMAND)
    for line in lines:
        assert len(line) <= width or len(shlex.split(line.removesuffix(" \\"))) == 1


def test_of_whole_objects_the_first_line_is_shown() -> None:
    assert command_lines("kubectl apply -f - <<EOF\nkind: Pod\nEOF", "", 80) == [
        "$ kubectl apply -f - <<EOF …"
    ]


def test_whole_objects_are_shown_on_request_as_a_shell_reads_them() -> None:
    lines = command_lines("kubectl apply -f - <<EOF\nkind: Pod\nEOF", "  ", 10, is_wide=True)
    assert lines == ["  $ kubectl apply -f - <<EOF", "kind: Pod", "EOF"]
