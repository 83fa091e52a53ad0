"""The extenders of a Policy, as v1.9 called them (spec 04 §19.1).

They are called in the order of the Policy for every pod. A failed filter or bind fails the attempt;
a failed score is skipped. Requests and answers are those of today (`engine.extenders`).
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
    Extender,
    ExtenderScore,
    RunBlocking,
    Wait,
    all_scores,
    rows_left,
    wait_blocking,
)
from kubestow.engine.extenders.http_extender import HttpExtender, run_inline
from kubestow.errors import ConfigError, ExtenderError


class FilterOutcomeV19(NamedTuple):
    """`rows` are those left, ascending; `reasons` are by the node names the extenders gave."""

    rows: npt.NDArray[np.intp]
    reasons: Mapping[str, Sequence[str]]


class HttpExtenderV19(HttpExtender):
    """An extender that reports a status other than 200 with the text of v1.9."""

    def _refusal(self, verb: str, url: str, code: int) -> str:
        return f"Failed {verb} with extender at URL {self.name}, code {code}"


class ExtendersV19:
    """`run_blocking` runs a binding, which may block; by default in a thread. `wait` returns the
    result of an answer in a scheduling cycle."""

    def __init__(
        self,
        extenders: Sequence[Extender],
        *,
        wait: Wait = wait_blocking,
        run_blocking: RunBlocking = asyncio.to_thread,
    ) -> None:
        self._extenders = tuple(extenders)
        self._wait = wait
        self._run_blocking = run_blocking

    def filter(self, pod: Pod, rows: npt.NDArray[np.intp], snapshot: Snapshot) -> FilterOutcomeV19:
        """Raises ExtenderError, which fails the attempt."""
        reasons: dict[str, list[str]] = {}
        for extender in self._extenders:
            if len(rows) == 0:
                break
            if not extender.has_filter_verb:
                continue
            with _as_extender_error():
                answer = extender.filter(pod, pick(snapshot.nodes, rows))
            # Nodes take turns by name, so the order of the answer has no meaning.
            rows = np.unique(rows_left(extender.name, answer, rows, snapshot))
            for node_name, reason in answer.failed.items():
                reasons.setdefault(node_name, []).append(reason)
        return FilterOutcomeV19(rows, reasons)

    def prioritize(
        self, pod: Pod, rows: npt.NDArray[np.intp], snapshot: Snapshot
    ) -> tuple[ExtenderScore, ...]:
        """Scores in the order of the rows. Unlike today's they are not multiplied by ten."""
        nodes = pick(snapshot.nodes, rows)
        positions = {node.metadata.name: position for position, node in enumerate(nodes)}
        parts: list[ExtenderScore] = []
        answers = all_scores(self._extenders, pod, nodes, self._wait)
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
        """Bind by the first extender with the verb; False if none has it. Raises ExtenderError."""
        binder = next((one for one in self._extenders if one.has_bind_verb), None)
        if binder is None:
            return False
        with _as_extender_error():
            await self._run_blocking(lambda: binder.bind(pod, node_name))
        return True


@contextmanager
def _as_extender_error() -> Generator[None, None, None]:
    """An extender may raise anything: the attempt fails, the scheduler goes on."""
    try:
        yield
    except ExtenderError:
        raise
    except Exception as error:
        raise ExtenderError(str(error)) from error


def extenders_v1_9(
    configs: Iterable[ExtenderConfig], *, in_thread: bool = True, wait: Wait = wait_blocking
) -> ExtendersV19 | None:
    """The extenders of a Policy; None if there are none.

    `in_thread`: bindings block a thread. Not in virtual time, which would not wait for it.
    """
    try:
        extenders = [HttpExtenderV19(config, wait=wait) for config in configs]
    except ConfigError as error:
        raise ConfigError(f"couldn't build extenders: {error}") from error
    if not extenders:
        return None
    run_blocking = asyncio.to_thread if in_thread else run_inline
    return ExtendersV19(extenders, wait=wait, run_blocking=run_blocking)
