"""The address of a page has a token, which other users must not see."""

import atexit
import stat
import webbrowser
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from urllib.parse import urlsplit

import pytest

from kubestow.config.extenders import ExtenderConfig
from kubestow.config.feature_gates import DEFAULT_GATES
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.scheduler import Scheduler
from kubestow.service.page import open_browser
from kubestow.service.page_facts import page_facts

ADDRESS = "http://127.0.0.1:1/page/?token=hunter2"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a browser is started with."""
    addresses: list[str] = []

    def note(address: str) -> bool:
        addresses.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", note)
    return addresses


def test_a_browser_is_started_without_the_token(opened: list[str]) -> None:
    ended: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(atexit, "register", lambda *call, **named: ended.append((call, named)))
        assert open_browser(ADDRESS)
    (address,) = opened
    assert "hunter2" not in address
    file = Path(urlsplit(address).path)
    assert f"url={ADDRESS}" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    ((call, named),) = ended
    call[0](*call[1:], **named)
    assert not file.parent.exists()


def test_the_page_shows_no_secret_of_the_configuration() -> None:
    extender = ExtenderConfig(url_prefix="https://me:hunter2@host")
    scheduler = cast(Scheduler, SimpleNamespace(profiles={}))
    config = SchedulerConfig(extenders=(extender,))
    facts = page_facts("run", scheduler, config, DEFAULT_GATES)
    assert "hunter2" not in facts.config
    assert "urlPrefix: https://REDACTED@host" in facts.config


def test_without_a_browser_the_user_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(address: str) -> bool:
        raise webbrowser.Error

    monkeypatch.setattr(webbrowser, "open", none)
    assert not open_browser(ADDRESS)
