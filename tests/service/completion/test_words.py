"""Which words can follow, after any beginning of a command line."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.service.completion.table import NODES, read_table
from kubestow.service.completion.words import TypedLine, completions


def found(text: str) -> list[str]:
    """The completions of the last word; pods and nodes are called after what they were found by."""

    def find(kind: str, line: TypedLine, incomplete: str) -> Sequence[str]:
        where = "+".join(line.values.get("--filename", [])) or line.last("--context") or "cluster"
        return [f"{'node' if kind == NODES else 'pod'}-of-{where}"]

    *words, incomplete = text.split(" ")
    return [word.text for word in completions(words, incomplete, find)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("si", ["simulate"]),
        ("print", ["print-default-config"]),
        ("--ver", ["--version"]),
        ("nope", []),
        ("nope --x", []),
        ("help ex", ["explain"]),
        ("help explain ", []),
        ("plugin ", ["check"]),
        ("plugin check ", []),
        ("simulate --res", ["--reschedule"]),
        ("simulate -o ", ["table", "wide", "name", "json", "yaml"]),
        ("simulate -o j", ["json"]),
        ("simulate --output=j", ["--output=json"]),
        ("simulate --strict --compatibility v1.1", ["v1.17"]),
        ("simulate -f ", []),  # files
        ("simulate --nope=", []),
        ("run --leader-elect-lease", ["--leader-elect-lease-duration"]),
        ("run --v", ["--v", "--version", "--vmodule"]),
        ("run --config ", []),
        ("run --feature-gates GangSch", ["GangScheduling="]),
        ("run --feature-gates=GangSch", ["--feature-gates=GangScheduling="]),
        (
            "simulate --feature-gates A=true,GangScheduling=",
            ["A=true,GangScheduling=true", "A=true,GangScheduling=false"],
        ),
        ("bench --workload PreemptionA", ["PreemptionAsync"]),
        ("bench s", ["simulate", "soak"]),
        ("bench simulate --workload PreemptionA", ["PreemptionAsync"]),
        ("bench simulate --co", ["--compatibility"]),
        ("bench day --pods 5 -o ", ["table", "json"]),
        ("bench day ", []),
        ("bench --nodes 5 ", []),
        ("explain ", ["pod-of-cluster"]),
        ("explain --context c p", ["pod-of-c"]),
        ("explain -f a.yaml --filename=b.yaml ", ["pod-of-a.yaml+b.yaml"]),
        ("explain --node ", ["node-of-cluster"]),
        ("explain web-0 --node=", ["--node=node-of-cluster"]),
        ("explain web-0 ", []),
        ("simulate -f a.yaml --drain n", ["node-of-a.yaml"]),
    ],
)
def test_what_can_follow(text: str, words: list[str]) -> None:
    assert found(text) == words


def test_short_names_are_offered_after_one_dash() -> None:
    assert {"-f", "--filename"} <= set(found("simulate -"))
    assert "-f" not in found("simulate --")


def test_flags_of_run_are_those_of_kube_scheduler() -> None:
    flags = found("run --")
    assert {"--config", "--leader-elect", "--feature-gates", "--secure-port"} <= set(flags)
    assert len(flags) > 70


fragments = st.one_of(
    st.sampled_from(
        [*read_table()["commands"], "-", "--", "-o", "-f", "=", "a=b", "--output=", ""]
    ),
    st.text("-=a,/ ", max_size=6),
)


@given(st.lists(fragments, max_size=6), fragments)
def test_no_line_is_too_wrong(words: list[str], incomplete: str) -> None:
    for word in completions(words, incomplete, lambda *_: ["a"]):
        assert word.text.startswith(incomplete)
