"""TLS contexts from files and text. Connections with them: `test_dial`."""

import ssl
from pathlib import Path
from typing import Any

import pytest

from kubestow.cluster.http.tls import CertificatePair, TlsContexts, TlsSettings, build_context
from kubestow.errors import ConfigError


def test_text_and_file_are_the_same(certificates: Any):
    by_file = build_context(TlsSettings(ca_file=str(certificates.ca)))
    by_text = build_context(TlsSettings(ca_data=certificates.ca.read_bytes()))
    assert by_file.get_ca_certs() == by_text.get_ca_certs() != []
    assert by_file.verify_mode == ssl.CERT_REQUIRED
    assert by_file.check_hostname


def test_verification_is_skipped_only_when_asked():
    context = build_context(TlsSettings(skips_verification=True))
    assert context.verify_mode == ssl.CERT_NONE
    assert not context.check_hostname
    assert build_context(TlsSettings()).verify_mode == ssl.CERT_REQUIRED


def test_a_context_is_kept_until_a_file_changes(certificates: Any, tmp_path: Path):
    ca = tmp_path / "ca.crt"
    ca.write_bytes(certificates.ca.read_bytes())
    contexts = TlsContexts(TlsSettings(ca_file=str(ca)))
    first = contexts.current()
    assert contexts.current() is first
    ca.write_bytes(certificates.other_ca.read_bytes() + b"\n# longer\n")
    second = contexts.current()
    assert second is not first
    assert second.get_ca_certs() != first.get_ca_certs()


def test_a_pair_from_a_plugin_makes_a_new_context(certificates: Any):
    contexts = TlsContexts(TlsSettings())
    first = contexts.current()
    pair = CertificatePair(certificates.client.read_bytes(), certificates.client_key.read_bytes())
    contexts.use_pair(pair)
    second = contexts.current()
    assert second is not first
    contexts.use_pair(pair)
    assert contexts.current() is second


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param(
            TlsSettings(ca_file="/nowhere/ca.crt"),
            'certificate authority "/nowhere/ca.crt"',
            id="no-ca",
        ),
        pytest.param(TlsSettings(ca_data=b"x"), "authority given as data", id="bad-ca"),
        pytest.param(TlsSettings(ca_data=b"\xff"), "authority given as data", id="binary-ca"),
        pytest.param(
            TlsSettings(certificate_file="/nowhere/c", key_data=b"x"),
            'cannot read "/nowhere/c"',
            id="no-certificate",
        ),
        pytest.param(
            TlsSettings(certificate_data=b"x", key_data=b"y"),
            "cannot use the client certificate given",
            id="bad-certificate",
        ),
    ],
)
def test_what_cannot_be_used_is_named(settings: TlsSettings, message: str):
    with pytest.raises(ConfigError, match=message):
        build_context(settings)
