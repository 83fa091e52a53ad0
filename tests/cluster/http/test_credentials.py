"""Identities: tokens in files and from plugins."""

import asyncio
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from kubestow.cluster.http.credentials import (
    PLUGIN_VERSIONS,
    ExecPlugin,
    ExecSettings,
    FixedCredentials,
    TokenFile,
    basic,
    bearer,
)
from kubestow.errors import ConfigError
from kubestow.testing.clock import ManualClock

V1 = PLUGIN_VERSIONS[0]


def test_headers():
    assert bearer("t") == (("Authorization", "Bearer t"),)
    assert basic("ann", "pw") == (("Authorization", "Basic YW5uOnB3"),)


def test_a_fixed_identity_stays_what_it_is():
    credentials = FixedCredentials(bearer("t"))
    identity = asyncio.run(credentials.identify())
    assert identity.headers == bearer("t")
    assert identity.valid_until_s == math.inf
    assert not credentials.rejected()


def test_a_token_file_is_read_again_and_an_empty_one_keeps_the_token(tmp_path: Path):
    path = tmp_path / "token"
    path.write_text("one\n")
    credentials = TokenFile(str(path), ManualClock(1000))
    identity = asyncio.run(credentials.identify())
    assert identity.headers == bearer("one")
    assert identity.valid_until_s == 1060
    path.write_text("two")
    assert asyncio.run(credentials.identify()).headers == bearer("two")
    path.write_text("")
    assert asyncio.run(credentials.identify()).headers == bearer("two")
    path.unlink()
    assert asyncio.run(credentials.identify()).headers == bearer("two")
    assert credentials.rejected()


def test_a_missing_token_file_is_an_error(tmp_path: Path):
    path = str(tmp_path / "token")
    with pytest.raises(ConfigError, match="there is no token in the file"):
        asyncio.run(TokenFile(path, ManualClock()).identify())
    with_fallback = TokenFile(path, ManualClock(), fallback="given")
    assert asyncio.run(with_fallback.identify()).headers == bearer("given")


# --- Plugins ----------------------------------------------------------------------------------


def plugin(tmp_path: Path, output: str, *, exit_code: int = 0, **settings: Any) -> ExecPlugin:
    """A plugin that writes its input to `input.json` and prints the output."""
    script = tmp_path / "plugin.py"
    received = tmp_path / "input.json"
    script.write_text(
        "import json, os, pathlib, sys\n"
        "received = {'info': json.loads(os.environ['KUBERNETES_EXEC_INFO']),"
        " 'args': sys.argv[1:], 'region': os.environ.get('REGION'), 'home': os.environ['HOME']}\n"
        f"pathlib.Path({str(received)!r}).write_text(json.dumps(received))\n"
        f"print({output!r})\n"
        f"sys.exit({exit_code})\n"
    )
    return ExecPlugin(
        ExecSettings(
            command=sys.executable,
            args=(str(script), "get-token"),
            env=(("REGION", "north"),),
            **{"api_version": V1, **settings},
        ),
        ManualClock(1_700_000_000),
        environ={"HOME": "/home/ann"},
    )


def credential(**status: str) -> str:
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})


def test_a_plugin_gets_its_information_and_gives_a_token(tmp_path: Path):
    cluster = {"server": "https://api"}
    expires = "2023-11-14T22:18:20Z"  # five minutes from now
    output = credential(token="t", expirationTimestamp=expires)
    identity = asyncio.run(plugin(tmp_path, output, cluster=cluster).identify())
    assert identity.headers == bearer("t")
    assert identity.valid_until_s == 1_700_000_300
    assert json.loads((tmp_path / "input.json").read_text()) == {
        "info": {
            "apiVersion": V1,
            "kind": "ExecCredential",
            "spec": {"interactive": False, "cluster": cluster},
        },
        "args": ["get-token"],
        "region": "north",
        "home": "/home/ann",
    }


def test_a_plugin_may_give_a_certificate_that_does_not_expire(tmp_path: Path):
    output = credential(clientCertificateData="CERT", clientKeyData="KEY")
    identity = asyncio.run(plugin(tmp_path, output).identify())
    assert identity.headers == ()
    assert identity.pair is not None
    assert (identity.pair.certificate, identity.pair.key) == (b"CERT", b"KEY")
    assert identity.valid_until_s == math.inf


@pytest.mark.parametrize(
    ("output", "message"),
    [
        pytest.param("hush", "is no ExecCredential", id="no-json"),
        pytest.param('{"status": {"token": 5}}', "is no ExecCredential", id="wrong-type"),
        pytest.param('{"apiVersion": "v2"}', 'of version "v2", expected', id="other-version"),
        pytest.param(json.dumps({"apiVersion": V1}), "has no status", id="no-status"),
        pytest.param(credential(), "neither a token nor a certificate", id="nothing"),
        pytest.param(credential(clientKeyData="hush"), "only one of certificate", id="only-key"),
        pytest.param(
            credential(clientCertificateData="ü", clientKeyData="hush"), "is not PEM", id="no-pem"
        ),
    ],
)
def test_invalid_output_of_a_plugin_is_not_quoted(tmp_path: Path, output: str, message: str):
    with pytest.raises(ConfigError, match=message) as caught:
        asyncio.run(plugin(tmp_path, output).identify())
    assert "hush" not in str(caught.value)


def test_a_plugin_that_fails(tmp_path: Path):
    with pytest.raises(ConfigError, match="failed with exit code 3"):
        asyncio.run(plugin(tmp_path, "", exit_code=3).identify())


def test_a_missing_plugin_is_reported_with_its_install_hint():
    settings = ExecSettings(command="/nowhere/x", api_version=V1, install_hint="get it from y")
    with pytest.raises(ConfigError, match=r"(?s)No such file.*get it from y"):
        asyncio.run(ExecPlugin(settings, ManualClock()).identify())


def test_a_plugin_that_needs_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", None)  # as in a service
    with pytest.raises(ConfigError, match="needs a terminal"):
        asyncio.run(plugin(tmp_path, "", interactive_mode="Always").identify())


def test_a_plugin_of_an_unknown_version(tmp_path: Path):
    with pytest.raises(ConfigError, match='has version "v1alpha1", expected one of'):
        plugin(tmp_path, "", api_version="v1alpha1")
