"""Copies of the process: their messages, their ends, and how many there are at one time."""

import gc
import os
import signal
from collections import defaultdict
from contextlib import closing

from kubestow.simulator.forks import Forks, Send, Work


def collected(forks: Forks, works: list[Work]) -> tuple[dict[int, list[bytes]], dict[int, str]]:
    messages: dict[int, list[bytes]] = defaultdict(list)
    ends: dict[int, str] = {}
    for received in forks.run(works):
        if received.message is None:
            ends[received.number] = received.problem
        else:
            messages[received.number].append(received.message)
    return messages, ends


def test_messages_of_any_length_arrive_whole() -> None:
    sizes = [0, 1, 65_535, 65_536, 300_000]

    def work(send: Send) -> None:
        for size in sizes:
            send(b"x" * size)

    messages, ends = collected(Forks(2), [work, work])
    assert [len(message) for message in messages[0]] == sizes
    assert ends == {0: "", 1: ""}


def test_a_copy_that_is_killed_loses_neither_its_token_nor_the_others() -> None:
    def die(send: Send) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def say(send: Send) -> None:
        send(b"here")

    messages, ends = collected(Forks(1), [die, say, die, say])
    assert dict(messages) == {1: [b"here"], 3: [b"here"]}
    assert "SIGKILL" in ends[0]
    assert ends[1] == ""


def test_a_copy_may_make_copies_with_a_single_token() -> None:
    forks = Forks(1)

    def inner(send: Send) -> None:
        send(b"inner")

    def outer(send: Send) -> None:
        with forks.lent():
            for received in forks.run([inner, inner]):
                if received.message is not None:
                    send(received.message)
        send(b"outer")

    messages, ends = collected(forks, [outer, outer])
    assert messages[0] == [b"inner", b"inner", b"outer"]
    assert ends == {0: "", 1: ""}


def test_what_a_copy_changes_stays_in_it() -> None:
    state = {"pods": 1}

    def change(send: Send) -> None:
        state["pods"] += 1
        send(str(state["pods"]).encode())

    messages, _ = collected(Forks(2), [change, change])
    assert (messages[0], messages[1], state["pods"]) == ([b"2"], [b"2"], 1)


def free_fd() -> int:
    """The number that the next file gets."""
    fd = os.open(os.devnull, os.O_RDONLY)
    os.close(fd)
    return fd


def test_nothing_is_left_of_it_once_it_is_closed() -> None:
    def say(send: Send) -> None:
        send(b"here")

    before = free_fd()
    with closing(Forks(2)) as forks:
        collected(forks, [say, say, say])
        assert gc.get_freeze_count() > 0
    assert free_fd() == before
    assert gc.get_freeze_count() == 0
