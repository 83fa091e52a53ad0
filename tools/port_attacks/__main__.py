"""What clients without credentials delay: `python -m tools.port_attacks`.

Ends with code 1 if one of them delays the lease by more than 2 s or a probe by more than 1 s.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from tools.port_attacks.attacks import NAMES
from tools.port_attacks.run import ALL, AND, NICE, AttackRun, Measured

_HEADER: Final = (
    f"{'attack':20} {'connections':>11} {'lease delay':>12} {'slowest probe':>14} "
    f"{'failed':>11} {'log lines':>10} {'tracebacks':>11} {'memory':>9}"
)


def main() -> int:
    arguments = _parser().parse_args()
    names = [name for name in ALL if any(part in name for part in arguments.names or [""])]
    if not names:
        sys.exit(f"no attack has one of {', '.join(arguments.names)} in its name")
    if arguments.together:
        names = [AND.join(name for name in names if name in NAMES)]
    measured: list[Measured] = []
    is_json = arguments.output == "json"
    if not is_json:
        print(_HEADER)

    def report(result: Measured) -> None:
        measured.append(result)
        if not is_json:
            print(_line(result), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        run = AttackRun(Path(folder), seconds=arguments.seconds, nice=arguments.nice)
        asyncio.run(run.run(names, report))
    if is_json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(measured)) + b"\n")
    harmful = [result.name for result in measured if not result.is_harmless]
    if harmful:
        print(f"over the limit: {', '.join(harmful)}", file=sys.stderr)
    return 1 if harmful else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.port_attacks",
        description="What clients without credentials delay: the lease and probes.",
    )
    parser.add_argument("names", nargs="*", help="parts of names of attacks (all)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each lasts (60)")
    parser.add_argument(
        "--nice", type=int, default=NICE, help=f"lowers the CPU priority of attackers ({NICE})"
    )
    parser.add_argument("--together", action="store_true", help="make these attacks at once")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    return parser


def _line(result: Measured) -> str:
    failed = f"{result.failed_probes} of {result.probes}"
    return (
        f"{result.name:20} {result.connections:11} {result.lease_delay_s:10.2f} s "
        f"{result.probe_s:12.2f} s {failed:>11} {result.log_lines:10} {result.tracebacks:11} "
        f"{result.rss_mib:5.0f} MiB{'' if result.is_leading else '  the lease was lost'}"
    )


if __name__ == "__main__":
    sys.exit(main())
