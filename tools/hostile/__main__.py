"""What hostile objects cost other pods: `python -m tools.hostile`.

Each case is measured at half of its size and at its size. Ends with code 1 if one of them is over
the limit.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from typing import Final

import msgspec

from tools.hostile.cases import ALL_CASES
from tools.hostile.objects import Case
from tools.hostile.run import STRETCH_S_MAX, HostileRun, Measured
from tools.hostile.table import page_table

_NODES: Final = 5_000
_HEADER: Final = (
    f"{'object':42} {'size':>7} {'longest stretch, CPU':>21} {'wall':>9} "
    f"{'slowest pod':>12} {'lease':>9} {'memory':>8}"
)


def main() -> int:
    arguments = _parser().parse_args()
    cases = _chosen(arguments.names)
    logging.disable(logging.CRITICAL)
    measured: list[Measured] = []
    is_text = arguments.output == "table"
    if is_text:
        print(_HEADER)

    def report(result: Measured) -> None:
        measured.append(result)
        if is_text:
            print(_line(result), flush=True)

    HostileRun(nodes=arguments.nodes, watch_s=arguments.watch).run(cases, arguments.scale, report)
    if arguments.output == "json":
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(measured)) + b"\n")
    elif arguments.output == "markdown":
        print(page_table(measured))
    slow = [
        f"{result.name} ({result.size})"
        for result in measured
        if result.stretch_cpu_ms > STRETCH_S_MAX * 1000
    ]
    if slow:
        print(f"over {STRETCH_S_MAX * 1000:.0f} ms: {', '.join(slow)}", file=sys.stderr)
    return 1 if slow else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.hostile",
        description="What the largest objects an API server accepts cost the pods beside them.",
    )
    parser.add_argument("names", nargs="*", help="parts of names of cases (all)")
    parser.add_argument("--nodes", type=int, default=_NODES, help=f"how many nodes ({_NODES})")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full sizes (1.0)")
    parser.add_argument(
        "--watch", type=float, default=3.0, help="seconds to observe retries of each object (3)"
    )
    parser.add_argument("-o", "--output", choices=("table", "json", "markdown"), default="table")
    return parser


def _chosen(names: Sequence[str]) -> list[Case]:
    chosen = [case for case in ALL_CASES if not names or any(name in case.name for name in names)]
    if not chosen:
        sys.exit(f"no case has one of {', '.join(names)} in its name")
    return chosen


def _line(result: Measured) -> str:
    return (
        f"{result.name:42} {result.size:7} {result.stretch_cpu_ms:18.1f} ms "
        f"{result.stretch_wall_ms:6.0f} ms {result.canary_delay_ms:9.0f} ms "
        f"{result.lease_gap_ms:6.0f} ms {result.rss_mib:4.0f} MiB"
        f"{'' if result.is_settled else '  not decided in time'}"
    )


if __name__ == "__main__":
    sys.exit(main())
