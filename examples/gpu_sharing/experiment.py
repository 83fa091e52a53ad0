"""The experiment of the FGD paper as one command: which policy allocates the most GPUs?

python -m gpu_sharing.experiment --trace FOLDER
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gpu_sharing.config import POLICIES, TIES
from gpu_sharing.requests import WHOLE
from gpu_sharing.results import Experiment, as_markdown, as_table, policy_result, save_chart
from gpu_sharing.run import Run, run
from gpu_sharing.trace import TraceError, TraceNode, TracePod, capacity_milli, read_nodes, read_pods

FIRST_SEED = 42


def experiment(
    nodes: list[TraceNode],
    pods: list[TracePod],
    *,
    policies: Sequence[str],
    seeds: Sequence[int],
    list_name: str,
    ties: str,
    workers: int,
    progress: Progress,
) -> Experiment:
    """All policies with all seeds, in a process for each core."""
    jobs = [(policy, seed) for seed in seeds for policy in policies]
    task = progress.add_task("runs", total=len(jobs))
    runs: list[Run] = []
    for done in _runs(jobs, nodes, pods, ties, workers):
        runs.append(done)
        progress.update(task, advance=1, description=f"{done.policy}, seed {done.seed}")
    return Experiment(
        pods=list_name,
        ties=ties,
        seeds=list(seeds),
        gpus=capacity_milli(nodes) // WHOLE,
        policies=[
            policy_result(sorted((one for one in runs if one.policy == policy), key=_seed_of))
            for policy in policies
        ],
    )


def _runs(
    jobs: Sequence[tuple[str, int]],
    nodes: list[TraceNode],
    pods: list[TracePod],
    ties: str,
    workers: int,
) -> Iterator[Run]:
    if workers == 1:
        for policy, seed in jobs:
            yield run(policy, seed, nodes, pods, ties=ties)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(run, policy, seed, nodes, pods, ties=ties) for policy, seed in jobs]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            # After a fault or Ctrl-C, what has not begun is not begun.
            pool.shutdown(cancel_futures=True)


def _seed_of(one: Run) -> int:
    return one.seed


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m gpu_sharing.experiment",
        description="Place the pods of an openb trace with each policy of the FGD paper, and show "
        "how many GPUs are allocated when so many were requested.",
    )
    add = parser.add_argument
    add("--trace", type=Path, required=True, metavar="FOLDER", help="the folder of the openb trace")
    add(
        "--pods",
        default="default",
        metavar="NAME",
        help="openb_pod_list_NAME.csv (default: default)",
    )
    add("--seeds", type=int, default=10, metavar="N", help="orders of the pods (default: 10)")
    add("--first-seed", type=int, default=FIRST_SEED, metavar="N", help="(default: 42)")
    add(
        "--policies",
        nargs="+",
        choices=POLICIES,
        default=list(POLICIES),
        metavar="POLICY",
        help=f"some of {', '.join(POLICIES)} (default: all)",
    )
    add(
        "--ties",
        choices=TIES,
        default="name",
        help="of equal nodes the smallest name wins (name), or the order of kubestow's list (list)",
    )
    add(
        "--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="(default: all cores)"
    )
    add("-o", "--output", choices=("table", "markdown", "json"), default="table")
    add("--plot", type=Path, metavar="FILE", help="draw the curves: .svg, .png, .html or .json")
    options = parser.parse_args(arguments)
    if options.seeds < 1 or options.workers < 1:
        parser.error("--seeds and --workers have to be 1 or more")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    try:
        nodes, pods = read_nodes(options.trace), read_pods(options.trace, options.pods)
        with Progress(*columns, console=Console(stderr=True)) as progress:
            found = experiment(
                nodes,
                pods,
                policies=options.policies,
                seeds=range(options.first_seed, options.first_seed + options.seeds),
                list_name=options.pods,
                ties=options.ties,
                workers=options.workers,
                progress=progress,
            )
    except TraceError as error:
        sys.exit(f"error: {error}")
    match options.output:
        case "json":
            print(msgspec.json.encode(found).decode())
        case "markdown":
            print(as_markdown(found), end="")
        case _:
            Console().print(as_table(found))
    if options.plot is not None:
        try:
            save_chart(found, options.plot)
        except ModuleNotFoundError as error:
            sys.exit(f"error: cannot draw {options.plot}: {error}; install kubestow[reports]")


if __name__ == "__main__":
    main()
