"""The JSON between scheduler and extender (spec 04 §13.2).

Requests have capitalised fields and leave none out. Answers are read as Go reads them: the first
value of the body counts, keys are case-insensitive, unknown keys and nulls are skipped. An answer
of the wrong structure is an error that names the field.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

import msgspec

from kubestow.api.decode import encode_json, is_list, is_map
from kubestow.api.meta import Object
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.engine.extenders.chain import FilterAnswer, HostScore
from kubestow.errors import ExtenderError
from kubestow.framework.extender import MetaVictims, Victims

_INT64: Final = range(-(2**63), 2**63)
_INT64_TEXT: Final = "a whole number of 64 bits"


# --- requests ---


def encode_nodes_request(pod: Pod, nodes: Sequence[Node], *, names_only: bool) -> bytes:
    """The body of filter and prioritize."""
    names = [node.metadata.name for node in nodes] if names_only else None
    items: dict[str, object] | None = None
    if not names_only:
        items = {"metadata": {}, "items": [_raw(node) for node in nodes]}
    return msgspec.json.encode({"Pod": _raw(pod), "Nodes": items, "NodeNames": names})


def encode_bind_request(pod: Pod, node_name: str) -> bytes:
    metadata = pod.metadata
    return msgspec.json.encode(
        {
            "PodName": metadata.name,
            "PodNamespace": metadata.namespace,
            "PodUID": metadata.uid,
            "Node": node_name,
        }
    )


def encode_preempt_request(pod: Pod, victims: Mapping[str, Victims], *, uids_only: bool) -> bytes:
    by_node: dict[str, object] = {}
    for node_name, (pods, violation_count) in victims.items():
        shown = [{"UID": victim.metadata.uid} if uids_only else _raw(victim) for victim in pods]
        by_node[node_name] = {"Pods": shown, "NumPDBViolations": violation_count}
    return msgspec.json.encode(
        {
            "Pod": _raw(pod),
            "NodeNameToVictims": None if uids_only else by_node,
            "NodeNameToMetaVictims": by_node if uids_only else None,
        }
    )


def _raw(value: Object) -> msgspec.Raw:
    return msgspec.Raw(encode_json(value))


# --- answers ---


def decode_filter_answer(body: bytes, *, takes_names: bool) -> FilterAnswer:
    """`takes_names`: the extender has a node cache, so it may answer with names."""
    fields = _fields(_first_value(body), "")
    _raise_answered_error(fields)
    names, nodes = fields.get("nodenames"), fields.get("nodes")
    left: Sequence[str] = ()
    has_objects = False
    if takes_names and names is not None:
        left = [
            _string(name, f"NodeNames[{index}]")
            for index, name in enumerate(_list(names, "NodeNames"))
        ]
    elif nodes is not None:
        items = _list(_fields(nodes, "Nodes").get("items"), "Nodes.items")
        left = [_node_name(item, f"Nodes.items[{index}]") for index, item in enumerate(items)]
        has_objects = True
    return FilterAnswer(
        left,
        has_objects,
        _texts(fields.get("failednodes"), "FailedNodes"),
        _texts(fields.get("failedandunresolvablenodes"), "FailedAndUnresolvableNodes"),
    )


def decode_prioritize_answer(body: bytes) -> list[HostScore]:
    scores: list[HostScore] = []
    for index, entry in enumerate(_list(_first_value(body), "")):
        fields = _fields(entry, f"[{index}]")
        host = _string(fields.get("host"), f"[{index}].Host")
        scores.append(HostScore(host, _integer(fields.get("score"), f"[{index}].Score")))
    return scores


def decode_bind_answer(body: bytes) -> None:
    _raise_answered_error(_fields(_first_value(body), ""))


def decode_preempt_answer(body: bytes) -> dict[str, MetaVictims]:
    by_node = _map(_fields(_first_value(body), "").get("nodenametometavictims"), _META_VICTIMS)
    victims: dict[str, MetaVictims] = {}
    for node_name, value in by_node.items():
        at = f"{_META_VICTIMS}[{node_name}]"
        fields = _fields(value, at)
        uids = [
            _string(_fields(pod, f"{at}.Pods[{index}]").get("uid"), f"{at}.Pods[{index}].UID")
            for index, pod in enumerate(_list(fields.get("pods"), f"{at}.Pods"))
        ]
        count = _integer(fields.get("numpdbviolations"), f"{at}.NumPDBViolations")
        victims[node_name] = MetaVictims(uids, count)
    return victims


_META_VICTIMS: Final = "NodeNameToMetaVictims"


def _raise_answered_error(fields: Mapping[str, object]) -> None:
    if text := _string(fields.get("error"), "Error"):
        raise ExtenderError(text)


def _node_name(item: object, at: str) -> str:
    metadata = _fields(_fields(item, at).get("metadata"), f"{at}.metadata")
    return _string(metadata.get("name"), f"{at}.metadata.name")


def _first_value(body: bytes) -> object:
    try:
        text = body.decode()
        value: object = _DECODER.raw_decode(text.lstrip(" \t\r\n"))[0]
        return value
    except (ValueError, RecursionError) as error:
        what = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        shown = body[:_SHOWN_BYTES].decode(errors="replace") if body else "nothing"
        raise ExtenderError(f"cannot decode the answer of the extender: {what}: {shown}") from error


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


_SHOWN_BYTES: Final = 80
_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant)


# In each of these null is the empty value, and `at` is the path in the answer.


def _fields(value: object, at: str) -> dict[str, object]:
    return {key.lower(): field for key, field in _map(value, at).items()}


def _map(value: object, at: str) -> dict[str, object]:
    if value is None:
        return {}
    return dict(value) if is_map(value) else _mistaken(value, at, "an object")


def _list(value: object, at: str) -> list[object]:
    if value is None:
        return []
    return value if is_list(value) else _mistaken(value, at, "an array")


def _texts(value: object, at: str) -> dict[str, str]:
    return {key: _string(text, f"{at}[{key}]") for key, text in _map(value, at).items()}


def _string(value: object, at: str) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else _mistaken(value, at, "a string")


def _integer(value: object, at: str) -> int:
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool) and value in _INT64:
        return value
    _mistaken(value, at, _INT64_TEXT)


def _mistaken(value: object, at: str, expected: str) -> NoReturn:
    shown = json.dumps(value)
    if len(shown) > _SHOWN_BYTES:
        shown = f"{shown[:_SHOWN_BYTES]}…"
    where = f" at {at}" if at else ""
    raise ExtenderError(
        f"cannot decode the answer of the extender: found {shown}{where}, expected {expected}"
    )
