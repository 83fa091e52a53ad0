"""How the results of `kubestow bench` are printed: a table, JSON lines, or upstream's format."""

import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from kubestow.service.formats import BenchFormat
from kubestow.service.output import stdout
from kubestow.simulator.bench import Comparison
from kubestow.simulator.bench.measurement import PodTimes
from kubestow.simulator.bench.upstream import CALIBRATION_S
from kubestow.table import Table


def print_line(one: PodTimes, output: BenchFormat) -> None:
    """One line, at once: the next result may take a while."""
    data = json_line(one) if output is BenchFormat.JSON else _perf_json(one)
    sys.stdout.write(msgspec.json.encode(data).decode() + "\n")
    sys.stdout.flush()


def json_line(one: PodTimes) -> dict[str, Any]:
    disturbances = one.disturbances()
    return msgspec.to_builtins(one) | {"steady": not disturbances, "disturbed_by": disturbances}


def _perf_json(one: PodTimes) -> dict[str, Any]:
    items = [_item(one, "SchedulingThroughput", "pods/s", {"Average": one.pods_per_s})]
    if isinstance(one, Comparison):
        times_ms = {
            "Average": one.us_per_pod / 1000,
            "Perc50": one.p50_us / 1000,
            "Perc99": one.p99_us / 1000,
        }
        name = "scheduler_scheduling_algorithm_duration_seconds"
        items.append(_item(one, name, "ms", times_ms))
    return {"version": "v1", "dataItems": items}


def _item(one: PodTimes, metric: str, unit: str, data: dict[str, float]) -> dict[str, Any]:
    return {"data": data, "unit": unit, "labels": {"Name": one.title, "Metric": metric}}


def print_table(results: Sequence[PodTimes]) -> None:
    """All results; those of simulations have fewer columns."""
    rows = [_cells(one) for one in results]
    columns = list(rows[0])
    if all(one.runs == 1 for one in results):
        columns.remove("SPREAD")
    table = Table(*columns, right=columns[1:-1])
    for row in rows:
        table.add(*(row[column] for column in columns))
    table.print()
    for line in footnotes(results):
        stdout().print(line)


def _cells(one: PodTimes) -> dict[str, str]:
    """The texts of a row by column."""
    cells = {
        "WORKLOAD": one.title,
        "NODES": str(one.nodes),
        "INIT": str(one.init_pods),
        "PODS": str(one.measure_pods),
        "PODS/S": f"{one.pods_per_s:.0f}",
        "µs/POD": f"{one.us_per_pod:.0f}",
        "SPREAD": f"{one.us_per_pod_min:.0f}..{one.us_per_pod_max:.0f}",
        "CPU": f"{one.cpu_us_per_pod:.0f}",
    }
    if isinstance(one, Comparison):
        cells |= {
            "FIRST": f"{one.first_us:.0f}",
            "P50": f"{one.p50_us:.0f}",
            "P99": f"{one.p99_us:.0f}",
        }
    else:
        cells["PLACED"] = str(one.scheduled)
    cells["MiB"] = f"{one.peak_memory_mib:.0f}"
    if isinstance(one, Comparison):
        estimated = "~" if one.upstream_is_estimated else ""
        upstream_us, ratio = one.upstream_us_per_pod, one.ratio
        cells["UPSTREAM"] = "" if upstream_us is None else f"{estimated}{upstream_us:.0f}"
        cells["RATIO"] = "" if ratio is None else f"{estimated}{ratio:.1f}x"
    cells["DISTURBED BY"] = "; ".join(one.disturbances())
    return cells


def footnotes(results: Sequence[PodTimes]) -> list[str]:
    """What the columns mean, as far as they are filled."""
    comparisons = [one for one in results if isinstance(one, Comparison)]
    lines = ["", "µs/POD on the clock, CPU the same in CPU time"]
    if comparisons:
        lines[-1] += "; FIRST, P50 and P99 of single pods on the clock, in µs"
    compared = [one for one in comparisons if one.ratio is not None]
    if compared:
        calibrations_ms = [one.calibration_ms for one in compared]
        lines.append(
            "UPSTREAM: µs per pod of kube-scheduler v1.36.4, scaled to this machine (calibration "
            f"{min(calibrations_ms):.1f} to {max(calibrations_ms):.1f} ms here, "
            f"{CALIBRATION_S * 1000:.1f} ms there); ~ is an estimate"
        )
    if any(one.disturbances() for one in results):
        lines.append("the machine was busy: rely on CPU and P50; other times are too long")
    return lines
