"""What must not be shown: passwords, tokens and private keys, and what a terminal would obey.

A configuration is shown in logs, on pages and in files that are passed on. What is secret in it is
replaced before. Names decide where only the author of a plugin knows what a value means; a value
that looks like a secret is replaced under any name.

Not here: which parts of objects are left out of files (`api.kept_parts`).
"""

import base64
import re
from typing import Any, Final, cast

REDACTED: Final = "--- REDACTED ---"
# Inside of an address, which has to remain one.
_IN_URL: Final = "REDACTED"

_SECRET_NAMES: Final = (
    "password", "passwd", "passphrase", "pwd", "secret", "credential", "token", "apikey",
    "accesskey", "privatekey", "signingkey", "encryptionkey", "clientkey", "accountkey",
    "sharedkey", "tlskey", "sslkey", "hmackey", "masterkey", "keydata", "keypem", "authorization",
    "cookie", "bearer",
)  # fmt: skip
# Parts of many other words, so they count only by themselves.
_SECRET_WORDS: Final = frozenset(("pass", "pw"))
# A number under any other of these names counts something: `tokens: 5`.
_NEVER_COUNTS: Final = ("password", "passwd", "passphrase", "pwd", "secret", "credential")
# Where a secret is, or how it is used, is none.
_LAST_WORDS: Final = frozenset(
    (
        "dir", "file", "files", "key", "kind", "mode", "name", "names", "namespace", "path", "ref",
        "refs", "seconds", "ttl", "type", "url",
    )
)  # fmt: skip
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

# User and password end at the last @: a password may have an @ or a slash that should have been
# escaped. Without a password an @ counts before the path only.
_USER: Final = re.compile(
    r"""://
        (?: [^\s/?\#@"'<>:\[]{0,1024}:(?!\d*(?:[/?\#]|$))[^\s"'<>]{0,1024}
          | [^\s/?\#"'<>]{0,1024}
        ) @""",
    re.VERBOSE,
)
_PARAMETER: Final = re.compile(r"""([?&;])([^\s=&?;"'<>]+)=([^\s&;\#"'<>]+)""")
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
# The same in base64, of any kind of key, and JSON Web Tokens.
_PACKED: Final = re.compile(r"\bLS0tLS1CRUdJTi[A-Za-z0-9+/]{16,}={0,2}")
_WEB_TOKEN: Final = re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*")
# As in the texts by which databases are found. `Pw==` is the end of a text in base64.
_ASSIGNED: Final = re.compile(r"""([A-Za-z][\w-]*)(\s*=\s*)([^\s;&,"'=][^\s;&,"']*)""", re.ASCII)
_SCHEME: Final = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9+/=._~-]{6,}")


def without_secrets(text: str) -> str:
    """The text without passwords in addresses, private keys and values of Authorization headers."""
    if "://" in text:
        if "@" in text:
            text = _USER.sub(f"://{_IN_URL}@", text)
        text = _PARAMETER.sub(_parameter, text)
    if "PRIVATE KEY-----" in text:
        text = _PRIVATE_KEY.sub(REDACTED, text)
    if "Bearer" in text or "Basic" in text:
        text = _SCHEME.sub(rf"\1 {REDACTED}", text)
    if "LS0tLS1CRUdJTi" in text:
        text = _PACKED.sub(_packed, text)
    if "eyJ" in text:
        text = _WEB_TOKEN.sub(REDACTED, text)
    return text


def redacted(value: Any) -> Any:
    """A document without secrets; what has none is equal."""
    return _redacted(value, is_secret=False)


def is_secret_name(name: str) -> bool:
    """Whether a field of this name holds a secret: `password`, `apiKey`, `AUTH_TOKEN`."""
    words = [word.lower() for word in _WORD.findall(name)]
    together = "".join(words)
    if not any(part in together for part in _SECRET_NAMES) and _SECRET_WORDS.isdisjoint(words):
        return False
    if len(words) > 1 and words[-1] == "key":
        return any(part in together for part in _SECRET_NAMES if part.endswith("key")) or (
            "secret" in words
        )
    return len(words) < 2 or words[-1] not in _LAST_WORDS


def _redacted(value: Any, *, is_secret: bool) -> Any:
    if isinstance(value, str):
        return REDACTED if is_secret and value else _ASSIGNED.sub(_assigned, without_secrets(value))
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        # A list of headers or variables: the one field has the name, the other the value.
        is_named = isinstance(fields.get("name"), str) and is_secret_name(fields["name"])
        return {
            key: _redacted(
                entry, is_secret=is_secret or is_secret_name(key) or (is_named and key == "value")
            )
            if not _is_secret_number(key, entry)
            else REDACTED
            for key, entry in fields.items()
        }
    if isinstance(value, list | tuple):
        return [_redacted(entry, is_secret=is_secret) for entry in cast(list[Any], value)]
    return value


def _is_secret_number(name: str, value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return is_secret_name(name) and any(part in name.lower() for part in _NEVER_COUNTS)


def _packed(found: re.Match[str]) -> str:
    text = found[0]
    try:
        content = base64.b64decode(text[: len(text) // 4 * 4])
    except ValueError:
        return REDACTED
    return REDACTED if b"PRIVATE KEY" in content else text


def _assigned(found: re.Match[str]) -> str:
    if not is_secret_name(found[1]) or found[3] == _IN_URL:
        return found[0]
    return f"{found[1]}{found[2]}{_IN_URL}"


def _parameter(found: re.Match[str]) -> str:
    if not is_secret_name(found[2]):
        return found[0]
    return f"{found[1]}{found[2]}={_IN_URL}"


# --- Characters that a terminal obeys -----------------------------------------------------------


def printable(text: str, *, keeps: str = "") -> str:
    """The text with everything that is not shown as a character (controls, line ends, marks that
    turn the direction of writing) written as in Python's string literals; `keeps` stay.

    An owner reference, the message of a condition and the values of a selector may have any
    character: line ends would forge lines of output, and escape sequences change a terminal.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keeps else char.encode("unicode_escape").decode()
        for char in text
    )


def printable_lines(text: str) -> str:
    """What `printable` makes of a text that may have several lines: they stay."""
    return printable(text, keeps="\n\t")
