"""The extenders of a Policy, as v1.9 asked them (spec 04 §19.1).

They are asked in the order of the Policy about every pod. None may fail when it filters or binds;
when it scores, its scores are missing, that is all. Requests and answers are those of today
(`engine.extenders`).
"""

import asyncio
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kubestow.api.pod import Pod
from kubestow.api.quantity import wrap_int64
from kubestow.arrays import pick
from kubestow.cache.snapshot import Snapshot
from kubestow.config.extenders import ExtenderConfig
from kubestow.engine.extenders.chain import (
    CallAside,
    Extender,
    ExtenderScore,
    all_scores,
    rows_left,
)
from kubestow.engine.extenders.http_extender import HttpExtender, call_at_once
from kubestow.errors import ConfigError, ExtenderError


class FilterOutcomeV19(NamedTuple):
    """`rows` are those left, ascending; `reasons` why nodes were taken out, by the names the
    extenders gave."""

    rows: npt.NDArray[np.intp]
    reasons: Mapping[str, Sequence[str]]


class HttpExtenderV19(HttpExtender):
    """Says in the words of v1.9 that it got another status than 200."""

    def _refusal(self, verb: str, url: str, code: int) -> str:
        return f"Failed {verb} with extender at URL {self.name}, code {code}"


class ExtendersV19:
    """`call_aside` runs a binding, which may block; by default in a thread."""

    def __init__(
        self, extenders: Sequence[Extender], *, call_aside: CallAside = asyncio.to_thread
    ) -> None:
        self._extenders = tuple(extenders)
        self._call_aside = call_aside

    def filter(self, pod: Pod, rows: npt.NDArray[np.intp], snapshot: Snapshot) -> FilterOutcomeV19:
        """Raises ExtenderError, which fails the attempt."""
        reasons: dict[str, list[str]] = {}
        for extender in self._extenders:
            if len(rows) == 0:
                break
            if not extender.has_filter_verb:
                continue
            with _told_as_extender_error():
                answer = extender.filter(pod, pick(snapshot.nodes, rows))
            # Turns go by name, so that the order of the answer means nothing.
            rows = np.unique(rows_left(extender.name, answer, rows, snapshot))
            for node_name, reason in answer.failed.items():
                reasons.setdefault(node_name, []).append(reason)
        return FilterOutcomeV19(rows, reasons)

    def prioritize(
        self, pod: Pod, rows: npt.NDArray[np.intp], snapshot: Snapshot
    ) -> tuple[ExtenderScore, ...]:
        """Scores in the order of the rows. Unlike today's they count as they are, not tenfold."""
        nodes = pick(snapshot.nodes, rows)
        positions = {node.metadata.name: position for position, node in enumerate(nodes)}
        parts: list[ExtenderScore] = []
        answers = all_scores(self._extenders, pod, nodes)
        for extender, answer in zip(self._extenders, answers, strict=True):
            if answer is None:
                continue
            scores = np.zeros(len(nodes), np.int64)
            for host, score in answer:
                position = positions.get(host)
                if position is not None:
                    scores[position] = wrap_int64(int(scores[position]) + score)
            parts.append(ExtenderScore(extender.name, extender.weight, scores))
        return tuple(parts)

    async def bind(self, pod: Pod, node_name: str) -> bool:
        """Let the first extender that can bind do so; False if none can. Raises ExtenderError."""
        binder = next((one for one in self._extenders if one.has_bind_verb), None)
        if binder is None:
            return False
        with _told_as_extender_error():
            await self._call_aside(lambda: binder.bind(pod, node_name))
        return True


@contextmanager
def _told_as_extender_error() -> Generator[None, None, None]:
    """An extender may raise anything; the attempt fails with it, the scheduler goes on."""
    try:
        yield
    except ExtenderError:
        raise
    except Exception as error:
        raise ExtenderError(str(error)) from error


def extenders_v1_9(
    configs: Iterable[ExtenderConfig], *, in_thread: bool = True
) -> ExtendersV19 | None:
    """The extenders of a Policy; None if there are none.

    `in_thread`: bindings wait beside the event loop. Not so in virtual time, which would run ahead.
    """
    try:
        extenders = [HttpExtenderV19(config) for config in configs]
    except ConfigError as error:
        raise ConfigError(f"couldn't build extenders: {error}") from error
    if not extenders:
        return None
    return ExtendersV19(extenders, call_aside=asyncio.to_thread if in_thread else call_at_once)
