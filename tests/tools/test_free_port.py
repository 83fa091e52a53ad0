"""A free port stays free until a process that starts later serves there."""

import secrets
import socket
from pathlib import Path

import pytest

from tools import free_port as module
from tools.free_port import LOOPBACK, LOWEST, free_port


@pytest.fixture
def given_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the range that the system gives out; there is none at first."""
    path = tmp_path / "range"
    monkeypatch.setattr(module, "_GIVEN_OUT", path)
    return path


def test_the_system_gives_it_to_no_connection(given_out: Path) -> None:
    given_out.write_text(f"{LOWEST + 30}\t60999\n", encoding="ascii")
    ports = {free_port() for _ in range(50)}
    assert min(ports) >= LOWEST
    assert max(ports) < LOWEST + 30
    assert len(ports) > 1


def test_one_that_is_taken_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken, socket.socket() as free:
        taken.bind((LOOPBACK, free_port()))
        free.bind((LOOPBACK, free_port()))
        ports = [found.getsockname()[1] for found in (taken, taken, free)]
        free.close()
        drawn = iter(ports)
        monkeypatch.setattr(secrets, "randbelow", lambda _: next(drawn) - LOWEST)
        assert free_port() == ports[-1]


def test_without_a_known_range_it_is_below_the_usual_one(given_out: Path) -> None:
    assert not given_out.exists()
    assert LOWEST <= free_port() < 32_768


def test_where_every_port_is_given_out_it_is_one_of_those(given_out: Path) -> None:
    given_out.write_text("1024\t60999\n", encoding="ascii")
    assert free_port() >= 1024
