"""The runs of an experiment as a table, as JSON and as a chart."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
from rich.table import Table

from gpu_sharing.run import Run

# The loads of the table, in percent of the GPUs of the cluster.
SHOWN: Final = (100, 130)


class Spread(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Mean and standard deviation over the seeds, at each percent of load from 0 on."""

    mean: list[float]
    deviation: list[float]


class PolicyResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """All in percent of the GPUs of the cluster; `by_seed` has the allocation of each run."""

    policy: str
    allocated: Spread
    fragmented: Spread
    by_seed: dict[int, list[float]]
    placed_pods: float  # the mean


class Experiment(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pods: str
    ties: str
    seeds: list[int]
    gpus: int
    policies: list[PolicyResult]


def policy_result(runs: Sequence[Run]) -> PolicyResult:
    return PolicyResult(
        policy=runs[0].policy,
        allocated=_spread([run.allocated for run in runs]),
        fragmented=_spread([run.fragmented for run in runs]),
        by_seed={run.seed: run.allocated.round(3).tolist() for run in runs},
        placed_pods=sum(run.placed_count for run in runs) / len(runs),
    )


def _spread(curves: Sequence[npt.NDArray[np.float64]]) -> Spread:
    stacked = np.stack(curves)
    # The deviation of a sample; of one run there is none.
    deviation = stacked.std(axis=0, ddof=1) if len(curves) > 1 else np.zeros(stacked.shape[1])
    return Spread(
        mean=stacked.mean(axis=0).round(3).tolist(), deviation=deviation.round(3).tolist()
    )


def as_table(experiment: Experiment) -> Table:
    seeds = experiment.seeds
    table = Table(
        title=f"{experiment.gpus} GPUs, pods {experiment.pods}, seeds {seeds[0]} to {seeds[-1]}, "
        f"ties by {experiment.ties}"
    )
    table.add_column("policy")
    for what in ("allocated %", "fragmented %"):
        for load in SHOWN:
            table.add_column(f"{what}\nat load {load} %", justify="right")
    table.add_column("pods\nplaced", justify="right")
    for result in experiment.policies:
        cells = [_cell(curve, load) for curve in _curves(result) for load in SHOWN]
        table.add_row(result.policy, *cells, f"{result.placed_pods:.0f}")
    return table


def as_markdown(experiment: Experiment) -> str:
    """The same table for README.md."""
    heads = [f"{what} at {load} %" for what in ("allocated", "fragmented") for load in SHOWN]
    lines = [
        "| policy | " + " | ".join(heads) + " |",
        "|---|" + "---:|" * len(heads),
        *(
            f"| {result.policy} | "
            + " | ".join(_cell(curve, load) for curve in _curves(result) for load in SHOWN)
            + " |"
            for result in experiment.policies
        ),
    ]
    return "\n".join(lines) + "\n"


def _curves(result: PolicyResult) -> tuple[Spread, Spread]:
    return result.allocated, result.fragmented


def _cell(curve: Spread, load: int) -> str:
    return f"{curve.mean[load]:.2f} ± {curve.deviation[load]:.2f}"


def save_chart(experiment: Experiment, path: Path) -> None:
    """Draw allocation and fragmentation over the load; raises ModuleNotFoundError without altair.

    The suffix says in which format: .svg, .png, .html or .json.
    """
    import altair

    rows: list[dict[str, Any]] = [
        {
            "policy": result.policy,
            "what": what,
            "load": load,
            "mean": curve.mean[load],
            "low": curve.mean[load] - curve.deviation[load],
            "high": curve.mean[load] + curve.deviation[load],
        }
        for result in experiment.policies
        for what, curve in zip(("allocated", "fragmented"), _curves(result), strict=True)
        for load in range(len(curve.mean))
    ]
    policies = [result.policy for result in experiment.policies]
    load = altair.X("load:Q", title="requested GPUs, % of capacity")
    colour = altair.Color("policy:N", sort=policies, title=None)

    def panel(what: str, first_load: int, title: str) -> Any:
        shown = [row for row in rows if row["what"] == what and row["load"] >= first_load]
        scale = altair.Scale(zero=False, nice=True)
        x_scale = altair.Scale(domain=[first_load, max(row["load"] for row in shown)])
        base = altair.Chart(altair.Data(values=shown)).encode(x=load.scale(x_scale), color=colour)
        band = base.mark_area(opacity=0.2).encode(
            y=altair.Y("low:Q", title=title, scale=scale), y2="high:Q"
        )
        line = base.mark_line().encode(y=altair.Y("mean:Q", title=title, scale=scale))
        return (band + line).properties(width=360, height=260)

    chart = panel("allocated", 80, "allocated GPUs, % of capacity") | panel(
        "fragmented", 0, "fragmented GPUs, % of capacity"
    )
    chart.save(str(path))
