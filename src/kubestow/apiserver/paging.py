"""Tokens that continue a list: the version of its first page, and the last object of this one."""

import base64

import msgspec

from kubestow.apiserver.refusals import bad_request
from kubestow.apiserver.store import Key


def encode_token(version: int, last: Key) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode((version, *last))).decode()


def decode_token(token: str) -> tuple[int, Key]:
    try:
        raw = base64.urlsafe_b64decode(token)
        version, namespace, name = msgspec.json.decode(raw, type=tuple[int, str, str])
    except ValueError as error:  # of the encoding, the text or its content
        problem = f"continue key is not valid: {error}"
        raise bad_request(f"invalid continue token: {problem}") from error
    return version, (namespace, name)
