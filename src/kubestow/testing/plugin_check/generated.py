"""Pods, nodes and changes to try a plugin with, all from a seed.

Beside the usual fields they have labels and annotations that the plugin is likely to read: texts in
its module that can be keys of labels, with the texts of the same function and a few numbers as
values. Where such a key can name an extended resource, some nodes offer a few of it.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, Final, cast

import numpy as np

from kubestow.api.meta import LabelSelector
from kubestow.api.node import Node
from kubestow.api.pod import Pod, Toleration, TopologySpreadConstraint
from kubestow.testing.builders import make_node, make_pod

_LABEL: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_./]{0,60}[A-Za-z0-9])?")
_NUMBERS: Final = ("1", "50", "100")
_KEYS_SHOWN: Final = 40  # label keys taken from one plugin

# Values by label key.
LabelTexts = Mapping[str, Sequence[str]]


def label_texts(plugin: object, args: object) -> LabelTexts:
    """Keys of labels that the plugin may read, and values for them."""
    found: dict[str, list[str]] = {}
    for texts in (*_texts_in_package(type(plugin).__module__), [*_texts_in(args)]):
        usable = [text for text in texts if _LABEL.fullmatch(text)]
        for key in usable:
            others = [text for text in usable if text != key and "/" not in text]
            found.setdefault(key, []).extend(others)
    # Keys of an API first: many other texts only look like a key.
    shown = sorted(found.items(), key=lambda item: "/" not in item[0])[:_KEYS_SHOWN]
    return {key: _values(values) for key, values in shown}


def _values(texts: Sequence[str]) -> tuple[str, ...]:
    """A key that is used together with a number has numbers only."""
    numbers = [text for text in texts if text.isdigit()]
    return tuple(dict.fromkeys((*(numbers or texts), *_NUMBERS)))


def _texts_in_package(module_name: str) -> Iterator[list[str]]:
    """The texts of the plugin's module, then those of the others in its package."""
    if module_name.partition(".")[0] == "kubestow":
        return
    package, dot, _ = module_name.rpartition(".")
    others = [name for name in sys.modules if dot and name.startswith(f"{package}.")]
    for name in dict.fromkeys((module_name, *sorted(others))):
        yield from _texts_in_module(name)


def _texts_in_module(module_name: str) -> Iterator[list[str]]:
    """The texts in each function of the module, and its constants."""
    module = sys.modules.get(module_name)
    if module is None:
        return
    members = vars(module)
    yield [text for name, text in members.items() if isinstance(text, str) and name.isupper()]
    for value in members.values():
        if getattr(value, "__module__", None) == module_name:
            parts = [value, *vars(value).values()] if isinstance(value, type) else [value]
            for member in parts:
                code = getattr(member, "__code__", None)
                if isinstance(code, CodeType):
                    yield [*_texts_in_code(code)]


def _texts_in_code(code: CodeType) -> Iterator[str]:
    # The first constant may be the docstring; it does not look like a label.
    for constant in cast(tuple[object, ...], code.co_consts):
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, CodeType):
            yield from _texts_in_code(constant)


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in cast(Mapping[object, object], value).values():
            yield from _texts_in(one)
    elif isinstance(value, list | tuple):
        for one in cast(Sequence[object], value):
            yield from _texts_in(one)


class Generator:
    """Objects from one seed."""

    def __init__(self, seed: int, texts: LabelTexts) -> None:
        self.rng = np.random.default_rng(seed)
        self._texts = texts
        # Of their own, so that a plugin without such keys is tried with the same objects.
        self._key_rng = np.random.default_rng((seed, 1))
        # Pods of one kind have the same shape: they differ in name, priority and annotations only.
        self._kinds = [self._pod_fields() for _ in range(6)]

    def node(self, number: int) -> Node:
        rng = self.rng
        return make_node(
            f"node-{number}",
            cpu=str(rng.integers(1, 9)),
            memory=f"{rng.integers(1, 17)}Gi",
            pods=int(rng.integers(1, 20)),
            zone=f"zone-{rng.integers(3)}",
            labels={"disk": "ssd" if rng.random() < 0.5 else "hdd", **self._labels(0.5, rng)},
            allocatable=self._extended_resources(),
            taints=["slow=yes:PreferNoSchedule"] if rng.random() < 0.2 else [],
            unschedulable=bool(rng.random() < 0.1),
        )

    def pod(self, number: int) -> Pod:
        fields = self._kinds[int(self.rng.integers(len(self._kinds)))]
        priority = int(self.rng.integers(3))
        # Not those of the kind: no answer that is reused may depend on them.
        annotations = self._labels(0.5, self._key_rng)
        return make_pod(f"pod-{number}", priority=priority, annotations=annotations, **fields)

    def _pod_fields(self) -> dict[str, Any]:
        rng = self.rng
        spread = TopologySpreadConstraint(
            max_skew=1,
            topology_key="topology.kubernetes.io/zone",
            when_unsatisfiable="ScheduleAnyway",
            label_selector=LabelSelector(match_labels={"app": "web"}),
        )
        labels = {"app": "web"} if rng.random() < 0.5 else {}
        return {
            "cpu": f"{rng.integers(0, 20) * 100}m",
            "memory": f"{rng.integers(0, 8) * 256}Mi",
            "labels": {**labels, **self._labels(0.5, rng)},
            "node_selector": {"disk": "ssd"} if rng.random() < 0.2 else {},
            "host_ports": [80] if rng.random() < 0.1 else [],
            "tolerations": [Toleration(operator="Exists")] if rng.random() < 0.2 else [],
            "spread": [spread] if rng.random() < 0.2 else [],
        }

    def _labels(self, share: float, rng: np.random.Generator) -> dict[str, str]:
        return {
            key: values[int(rng.integers(len(values)))]
            for key, values in self._texts.items()
            if rng.random() < share
        }

    def _extended_resources(self) -> dict[str, int]:
        rng = self._key_rng
        return {
            key: int(rng.integers(1, 9))
            for key in self._texts
            if _is_extended_resource(key) and rng.random() < 0.5
        }


def _is_extended_resource(key: str) -> bool:
    domain, slash, name = key.partition("/")
    return bool(slash and name) and "." in domain and not domain.endswith("kubernetes.io")
