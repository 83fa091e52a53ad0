"""Rows of a run, and decisions, as Polars data frames.

Needs the optional extra `reports`: import this module after `extra.require_extra` only.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import polars as pl

from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.simulator.reports.tables import (
    Kind,
    Table,
    changes_table,
    nodes_table,
    pods_table,
    samples_table,
)
from kubestow.simulator.results import RunResult

_TYPES: Final[dict[Kind, type[pl.DataType]]] = {
    Kind.TEXT: pl.String,
    Kind.COUNT: pl.Int64,
    Kind.SECONDS: pl.Float64,
    Kind.SHARE: pl.Float64,
    Kind.NUMBER: pl.Float64,
    Kind.AMOUNT: pl.Int64,
}


class Frames(NamedTuple):
    """The tables of a run."""

    pods: pl.DataFrame
    nodes: pl.DataFrame
    samples: pl.DataFrame
    changes: pl.DataFrame


def frames_of(result: RunResult) -> Frames:
    return Frames(
        pods=frame_of(pods_table(result.pods)),
        nodes=frame_of(nodes_table(result.nodes)),
        samples=frame_of(samples_table(result.samples)),
        changes=frame_of(changes_table(result.changes)),
    )


def frame_of(table: Table) -> pl.DataFrame:
    """A table without rows has the same types."""
    return pl.DataFrame(
        [pl.Series(column.name, column.values, _TYPES[column.kind]) for column in table.columns]
    )


def attempts_frame(decisions: Iterable[FrozenDecision]) -> pl.DataFrame:
    """A row per attempt, in their order."""
    rows = [
        {
            "pod": decision.pod.key,
            "profile": decision.profile,
            "node": decision.node,
            "nominated_node": decision.nominated_node or "",
            "evaluated": decision.evaluated_count,
            "feasible": len(decision.feasible),
            "victims": len(decision.victims),
            "status": "" if decision.status is None else decision.status.code,
            "message": "" if decision.status is None else decision.status.message,
        }
        for decision in decisions
    ]
    return pl.DataFrame(rows, schema=_ATTEMPT)


def scores_frame(decisions: Iterable[FrozenDecision]) -> pl.DataFrame:
    """A row per attempt, feasible node and plugin; `attempt` is the row of `attempts_frame`."""
    parts = [
        pl.DataFrame(
            {
                "attempt": attempt,
                "pod": decision.pod.key,
                "node": list(decision.feasible),
                "plugin": scores.plugin,
                "weight": scores.weight,
                "raw": scores.raw,
                "normalized": scores.normalized,
                "weighted": scores.weighted,
            },
            schema=_SCORE,
        )
        for attempt, decision in enumerate(decisions)
        for scores in decision.scores
    ]
    return pl.concat(parts) if parts else pl.DataFrame(schema=_SCORE)


_ATTEMPT: Final[dict[str, type[pl.DataType]]] = {
    "pod": pl.String,
    "profile": pl.String,
    "node": pl.String,
    "nominated_node": pl.String,
    "evaluated": pl.Int64,
    "feasible": pl.Int64,
    "victims": pl.Int64,
    "status": pl.String,
    "message": pl.String,
}
_SCORE: Final[dict[str, type[pl.DataType]]] = {
    "attempt": pl.Int64,
    "pod": pl.String,
    "node": pl.String,
    "plugin": pl.String,
    "weight": pl.Int64,
    "raw": pl.Int64,
    "normalized": pl.Int64,
    "weighted": pl.Int64,
}
