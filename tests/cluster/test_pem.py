"""Certificates are loaded without leaving a key on a disk."""

import os
import ssl
import tempfile
from pathlib import Path

import pytest

from kubestow.cluster.pem import load_pair
from kubestow.cluster.self_signed import SelfSigned, self_signed


@pytest.fixture(scope="module")
def made() -> SelfSigned:
    return self_signed(now_ns=1_700_000_000_000_000_000)


@pytest.fixture(params=["in memory", "on disk"])
def kind_of_file(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "on disk":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    elif not hasattr(os, "memfd_create"):
        pytest.skip("this system has no files in memory")
    return request.param


def test_a_pair_is_loaded_and_nothing_is_left(
    made: SelfSigned, kind_of_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pair(context, made.certificate, made.key)
    assert list(tmp_path.iterdir()) == []


def test_a_key_of_another_certificate_is_refused(
    made: SelfSigned, kind_of_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    other = self_signed(now_ns=1_700_000_000_000_000_000)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with pytest.raises(ssl.SSLError):
        load_pair(context, made.certificate, other.key)
    assert list(tmp_path.iterdir()) == []


def test_in_memory_it_works_without_a_place_for_files(
    made: SelfSigned, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(os, "memfd_create"):
        pytest.skip("this system has no files in memory")
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    load_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), made.certificate, made.key)
