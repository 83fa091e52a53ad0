"""What objects of each kind may be called."""

import json
import re
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.apiserver.refusals import invalid, qualified_kind
from kubestow.cluster.resources import ApiResource

NAME_LENGTH_MAX: Final = 253
LABEL_LENGTH_MAX: Final = 63

_LABEL_PATTERN: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME_PATTERN: Final = rf"{_LABEL_PATTERN}(\.{_LABEL_PATTERN})*"
# What the groups match is not needed.
_NAME: Final = re.compile(_NAME_PATTERN.replace("(", "(?:"))
_LABEL: Final = re.compile(_LABEL_PATTERN.replace("(", "(?:"))
_NAME_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'example.com',"
    f" regex used for validation is '{_NAME_PATTERN}')"
)
_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-',"
    " and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc',"
    f" regex used for validation is '{_LABEL_PATTERN}')"
)
# Servers make UUIDs; others are found in files that people wrote.
_UID: Final = re.compile(r"[-\w.:/]*", re.ASCII)
_UID_RULE: Final = "must consist of alphanumeric characters, '-', '_', '.', ':' or '/'"
_RBAC: Final = "rbac.authorization.k8s.io"


def name_errors(resource: ApiResource, name: str) -> list[str]:
    """The errors of an object's name."""
    if not name:
        return ["metadata.name: Required value: name or generateName is required"]
    return [
        f"metadata.name: Invalid value: {json.dumps(name, ensure_ascii=False)}: {problem}"
        for problem in _problems(resource, name)
    ]


def require_stored_names(resource: ApiResource, metadata: JsonObject) -> None:
    """InvalidError for a name, namespace or UID that no server gives an object: commands and paths
    are made of them."""
    name, namespace, uid = (metadata.get(key) or "" for key in ("name", "namespace", "uid"))
    errors = name_errors(resource, name)
    for key, value, rule in (
        ("namespace", namespace, label_problem(namespace) if namespace else None),
        ("uid", uid, None if _UID.fullmatch(uid) else _UID_RULE),
    ):
        if rule is not None:
            shown = json.dumps(value, ensure_ascii=False)
            errors.append(f"metadata.{key}: Invalid value: {shown}: {rule}")
    if errors:
        raise invalid(qualified_kind(resource), name, errors)


def subdomain_problem(name: str) -> str | None:
    """Why this cannot be the name of most objects; None if it can."""
    if len(name) > NAME_LENGTH_MAX:
        return f"must be no more than {NAME_LENGTH_MAX} bytes"
    return None if _NAME.fullmatch(name) else _NAME_RULE


def label_problem(name: str) -> str | None:
    """Why this cannot be the name of a part of an object; None if it can."""
    if len(name) > LABEL_LENGTH_MAX:
        return f"must be no more than {LABEL_LENGTH_MAX} bytes"
    return None if _LABEL.fullmatch(name) else _LABEL_RULE


def _problems(resource: ApiResource, name: str) -> Iterator[str]:
    if resource.group == _RBAC:
        # Names of roles are parts of paths, such as `system:node`.
        yield from (f"may not be '{name}'" for _ in range(name in (".", "..")))
        yield from (f"may not contain '{char}'" for char in "/%" if char in name)
    elif resource.qualified_name == "ipaddresses.networking.k8s.io":
        if not _is_address(name):
            yield "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    elif resource.qualified_name in ("namespaces", "services"):
        if len(name) > LABEL_LENGTH_MAX:
            yield f"must be no more than {LABEL_LENGTH_MAX} bytes"
        if not _LABEL.fullmatch(name):
            yield "must not contain dots" if _NAME.fullmatch(name) else _LABEL_RULE
    elif len(name) > NAME_LENGTH_MAX:
        yield f"must be no more than {NAME_LENGTH_MAX} bytes"
    elif not _NAME.fullmatch(name):
        yield _NAME_RULE


def _is_address(text: str) -> bool:
    try:
        return str(ip_address(text)) == text
    except ValueError:
        return False
