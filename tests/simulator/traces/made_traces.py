"""Small files in the formats of public traces, made from a seed. Nothing of the traces is copied:
only their columns are those of the published schemas."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

HOUR_S = 3600


class MadeTrace(NamedTuple):
    nodes: Path
    pods: Path
    usage: Path


def make_alibaba(folder: Path, *, machines: int = 3, containers: int = 6) -> MadeTrace:
    """machine_meta, container_meta and container_usage, without headers."""
    rng = np.random.default_rng(1)
    files = MadeTrace(*(folder / f"{name}.csv" for name in ("machines", "containers", "usage")))
    files.nodes.write_text(
        "".join(
            f"m_{number},{time},1,1,96,100,USING\n"
            for number in range(machines)
            for time in (0, 500)
        )
    )
    pods, usage = "", ""
    for number in range(containers):
        machine, begin = f"m_{number % machines}", 60 * number
        name, app = f"c_{number}", f"app_{number % 2}"
        pods += f"{name},{machine},{begin},{app},started,400,800,1.56\n"
        pods += f"{name},{machine},{begin + 100},{app},started,400,800,1.56\n"
        if number == 0:
            pods += f"{name},{machine},{HOUR_S},{app},stopped,400,800,1.56\n"
        for step in range(3):
            cpu = int(rng.integers(5, 150))
            usage += f"{name},{machine},{begin + 300 * step},{cpu},{80 + step},1.1,,2,3.5,4.5,6\n"
    files.pods.write_text(pods)
    files.usage.write_text(usage)
    return files


def make_azure(folder: Path, *, machines: int = 5) -> MadeTrace:
    """vmtable and vm_cpu_readings, without headers; nodes are a plain file."""
    rng = np.random.default_rng(2)
    files = MadeTrace(*(folder / f"{name}.csv" for name in ("nodes", "vmtable", "readings")))
    files.nodes.write_text("name,count,cpu,memory\nhost,2,64,256Gi\n")
    sizes = (("2", "4"), ("4", "8"), (">24", ">64"))
    table, readings = "", ""
    for number in range(machines):
        identifier = f"zK{number}/x+AbC=="
        cores, memory = sizes[number % 3]
        begin, end = 300 * number, 300 * number + HOUR_S
        table += f"{identifier},sub/1,dep+{number % 2},{begin},{end},99.5,20.25,80.5,Interactive,"
        table += f"{cores},{memory}\n"
        for step in range(4):
            low, high = sorted(rng.uniform(0, 100, 2))
            mean = (low + high) / 2
            readings += f"{begin + 300 * step},{identifier},{low:.4f},{high:.4f},{mean:.4f}\n"
    files.pods.write_text(table)
    files.usage.write_text(readings)
    return files
