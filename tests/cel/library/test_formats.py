"""Which texts have which named format, and what is reported of the others."""

import pytest

from kubestow.cel import Environment

ENVIRONMENT = Environment({})

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must"
    " start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for"
    " validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'example.com', regex used for"
    r" validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
OLD_LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an"
    " alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123',"
    " regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
LONG_LABEL = "must be no more than 63 characters"
LONG_SUBDOMAIN = "must be no more than 253 characters"


def errors_of(name: str, text: str) -> list[str]:
    program = ENVIRONMENT.compile(f"format.{name}().validate('{text}').orValue([])")
    errors = program.evaluate({})
    assert isinstance(errors, tuple)
    return list(map(str, errors))


@pytest.mark.parametrize(
    ("name", "text", "errors"),
    [
        ("dns1123Label", "a", []),
        ("dns1123Label", "0-a", []),
        ("dns1123Label", "a" * 63, []),
        ("dns1123Label", "a" * 64, [LONG_LABEL]),
        ("dns1123Label", "", [LABEL]),
        ("dns1123Label", "a-", [LABEL]),
        ("dns1123Label", "A" * 64, [LONG_LABEL, LABEL]),
        ("dns1123Label", "a.b", ["must not contain dots"]),
        ("dns1123Label", "a.b" * 30, [LONG_LABEL, "must not contain dots"]),
        ("dns1123Label", "a..b", [LABEL]),
        ("dns1123Label", "é" * 32, [LONG_LABEL, LABEL]),  # counted in bytes
        ("dns1123Subdomain", "a.b", []),
        ("dns1123Subdomain", "a" * 253, []),
        ("dns1123Subdomain", "a" * 254, [LONG_SUBDOMAIN]),
        ("dns1123Subdomain", "a..b", [SUBDOMAIN]),
        ("dns1035Label", "a0", []),
        ("dns1035Label", "a" * 63, []),
        ("dns1035Label", "a" * 64, [LONG_LABEL]),
        ("dns1035Label", "0a", [OLD_LABEL]),
        # The last two characters of a prefix stand for the generated end.
        ("dns1123LabelPrefix", "a-", []),
        ("dns1123LabelPrefix", "aA-", []),
        ("dns1123LabelPrefix", "Aa-", [LABEL]),
        ("dns1123LabelPrefix", "-", [LABEL]),
        ("dns1123LabelPrefix", "a" * 63 + "-", []),
        ("dns1123SubdomainPrefix", "a.b-", []),
        ("dns1123SubdomainPrefix", "-", [SUBDOMAIN]),
        ("dns1035LabelPrefix", "a-", []),
        ("dns1035LabelPrefix", "0aa-", [OLD_LABEL]),
        ("labelValue", "", []),
        ("labelValue", "a" * 64, ["must be no more than 63 bytes"]),
        ("qualifiedName", "example.com/a", []),
        ("qualifiedName", "a" * 64, ["name part must be no more than 63 bytes"]),
        ("uri", "https://example.com/a", []),
        ("uri", "/a", []),
        ("uri", "a", ["invalid URI"]),
        ("uuid", "01234567-89ab-CDEF-0123-456789abcdef", []),
        ("uuid", "0123456789abcdef0123456789abcdef", []),
        ("uuid", "{01234567-89ab-cdef-0123-456789abcdef}", ["does not match the UUID format"]),
        ("uuid", "01234567-89ab-cdef-0123-456789abcde", ["does not match the UUID format"]),
        ("byte", "YWI=", []),
        ("byte", "YQ==", []),
        ("byte", "YWJjZA==", []),
        ("byte", "", ["invalid base64"]),
        ("byte", "YWI", ["invalid base64"]),
        ("byte", "YW-_", ["invalid base64"]),
        ("date", "2024-02-29", []),
        ("date", "0000-02-29", []),
        ("date", "2023-02-29", ["invalid date"]),
        ("date", "1900-02-29", ["invalid date"]),
        ("date", "20240229", ["invalid date"]),
        ("date", "2024-W01-1", ["invalid date"]),
        ("datetime", "2024-02-29T23:59:59Z", []),
        ("datetime", "2024-02-29t23:59:59.123+99:99", []),
        ("datetime", "2024-02-29T24:00:00Z", ["invalid datetime"]),
        ("datetime", "2024-02-29T23:60:00Z", ["invalid datetime"]),
        ("datetime", "2024-02-29T23:59:60Z", ["invalid datetime"]),
        ("datetime", "2023-02-29T23:59:59Z", ["invalid datetime"]),
        ("datetime", "2024-02-29 23:59:59Z", ["invalid datetime"]),
        ("datetime", "2024-02-29T23:59:59", ["invalid datetime"]),
    ],
)
def test_a_text_has_the_format_or_these_errors(name: str, text: str, errors: list[str]) -> None:
    assert errors_of(name, text) == errors


@pytest.mark.parametrize("name", ["dns1035LabelPrefix", "datetime", "labelValue"])
def test_formats_are_found_by_name(name: str) -> None:
    found = ENVIRONMENT.compile(f"format.named('{name}').value() == format.{name}()")
    assert found.evaluate({}) is True
