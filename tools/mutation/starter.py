"""Starts test runs quickly: a process that has imported everything but the package under test.

Run as a script, in the folder of the copy, so that nothing of this package is imported before the
fork. Reads one run per line (`Run`) and answers with the exit code, negative for a signal, or with
null if the time was over.
"""

import json
import os
import resource
import signal
import sys
from typing import Any, Final

# Imported here once instead of in every run.
PREPARED: Final = ("aiohttp", "cryptography.x509", "hypothesis.stateful", "msgspec", "numpy.random")
PREPARED_TOO: Final = ("prometheus_client", "pytest", "rich.console", "typer", "uvloop", "yaml")


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end of its input ends it
    for name in (*PREPARED, *PREPARED_TOO):
        try:
            __import__(name)
        except ImportError:
            continue  # it only makes runs faster
    for line in sys.stdin:
        run: dict[str, Any] = json.loads(line)
        child = os.fork()
        if child == 0:
            _run_tests(run)
        print(json.dumps(_exit_code(child, run["wall_s"])), flush=True)


def _run_tests(run: dict[str, Any]) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_CPU, (run["processor_s"], run["processor_s"]))
    os.environ |= run["environment"]
    sys.path[:0] = [run["sources"]]
    with open(run["output"], "wb") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    import pytest

    code = pytest.main(run["arguments"])
    sys.stdout.flush()
    os._exit(int(code))


def _exit_code(child: int, wall_s: float) -> int | None:
    def over(*_: object) -> None:
        os.killpg(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, wall_s)
    _, status = os.waitpid(child, 0)
    is_in_time = signal.setitimer(signal.ITIMER_REAL, 0)[0] > 0
    return os.waitstatus_to_exitcode(status) if is_in_time else None


if __name__ == "__main__":
    main()
