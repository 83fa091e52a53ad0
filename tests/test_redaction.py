"""Secrets are replaced; what is none stays as it is."""

import base64

import pytest

from kubestow.redaction import (
    REDACTED,
    is_secret_name,
    printable,
    printable_lines,
    redacted,
    without_secrets,
)


@pytest.mark.parametrize(
    "text",
    [
        "https://user:hunter2@host/path",
        'Post "https://user:hunter2@host:1/filter": Connection refused',
        "https://hunter2@host/path",
        "http://hunter2:x-oauth-basic@[::1]:8080/a",
        "https://user:p@hunter2@host/path",
        "https://user:with/hunter2@host/path",
        "https://user:1@2/hunter2@host/path",
        "https://host/path?token=hunter2&x=1",
        "https://host/path?x=1&api_key=hunter2",
        "http://one:8080, https://user:hunter2@two",
        "Authorization: Bearer hunter2",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nhunter2",
        "key: " + base64.b64encode(b"-----BEGIN EC PRIVATE KEY-----\nhunter2").decode(),
        "got eyJhbGciOiJSUzI1NiIsImtpZCI6.eyJpc3MiOiJodW50ZXIyIn0.c2lnbmF0dXJl",
    ],
)
def test_secrets_in_texts_are_replaced(text: str) -> None:
    shown = without_secrets(text)
    assert "hunter2" not in shown
    assert "eyJpc3MiOiJodW50ZXIyIn0" not in shown
    assert base64.b64encode(b"BEGIN EC PRIVATE").decode()[4:12] not in shown
    assert "REDACTED" in shown
    assert without_secrets(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "https://host:10259/path",
        "https://host/path@v1",
        "https://host:443?x=a@b",
        "http://[::1]:80/a@b",
        "registry.example/image@sha256:0123",
        "https://host/path?tokenFile=/etc/token&limit=3",
        "-----BEGIN CERTIFICATE-----",
        base64.b64encode(b"-----BEGIN CERTIFICATE-----\nabcdefghijklmnopq").decode(),
        "Basic tests",
    ],
)
def test_other_texts_stay(text: str) -> None:
    assert without_secrets(text) == text


def test_the_rest_of_an_address_stays() -> None:
    assert without_secrets("https://a:b@host:1/x?y=2") == "https://REDACTED@host:1/x?y=2"


def test_a_long_text_takes_little_time() -> None:
    # Each address is looked at up to a limit; a pattern without one would not end.
    assert without_secrets("://" * 20_000 + "@").endswith("REDACTED@")
    assert without_secrets("a" * 1_000_000 + "://b") == "a" * 1_000_000 + "://b"


@pytest.mark.parametrize(
    "name",
    ["password", "dbPassword", "PASSWD", "apiKey", "api-key", "AUTH_TOKEN", "clientSecret",
     "secretKey", "secretAccessKey", "keyData", "privateKey", "credentials", "Authorization",
     "passphrase", "pass", "db_pass", "tlsKey"],
)  # fmt: skip
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["key", "labelKey", "topologyKey", "secretName", "secretRef", "tokenFile", "tokenPath",
     "passwordFile", "keyFile", "passes", "bypass", "compassHeading", "weight", "urlPrefix",
     "certData"],
)  # fmt: skip
def test_names_of_other_fields(name: str) -> None:
    assert not is_secret_name(name)


def test_documents() -> None:
    found = redacted(
        {
            "url": "https://a:b@host",
            "password": "x",
            "database": "Server=db; Password=x;Timeout=3",
            "pin": 3,
            "secret": 1234,
            "tokens": 5,
            "credentials": {"user": "me", "more": ["x"], "on": True},
            "headers": [
                {"name": "X-Api-Token", "value": "x"},
                {"name": "Accept", "value": "text/plain"},
            ],
            "empty": {"password": ""},
        }
    )
    assert found == {
        "url": "https://REDACTED@host",
        "password": REDACTED,
        "database": "Server=db; Password=REDACTED;Timeout=3",
        "pin": 3,
        "secret": REDACTED,
        "tokens": 5,
        "credentials": {"user": REDACTED, "more": [REDACTED], "on": True},
        "headers": [
            {"name": "X-Api-Token", "value": REDACTED},
            {"name": "Accept", "value": "text/plain"},
        ],
        "empty": {"password": ""},
    }


def test_padding_of_base64_is_no_assignment() -> None:
    assert redacted({"caData": "AAAAPw=="}) == {"caData": "AAAAPw=="}
    assert redacted("host=db pw=hunter2") == "host=db pw=REDACTED"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("web → zone-ä", "web → zone-ä"),
        ("a\x1b[31mred", r"a\x1b[31mred"),
        ("a\n::error::b", r"a\n::error::b"),
        ("a\rb\tc\x00d\x9b", r"a\rb\tc\x00d\x9b"),
        ("\u202eoverride\u2028", r"\u202eoverride\u2028"),
        ("\ud800", r"\ud800"),
    ],
)
def test_what_is_no_character_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_text_of_several_lines_keeps_them() -> None:
    assert printable_lines("a\n\tb\x1b\r\n") == "a\n\tb\\x1b\\r\n"
