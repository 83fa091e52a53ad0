"""What reuse and a start cost the reader: today's numbers, which may only fall.

A change that lowers one of them writes the new number here. A change that needs more of one takes
some away elsewhere; if it cannot, its commit says what the reader gets for it.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import kubestow
from kubestow.api.meta import LabelSelector
from kubestow.api.pod import Affinity, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kubestow.framework.reuse import Reuse
from kubestow.testing import make_node, make_pod, simulate

PACKAGE = Path(kubestow.__file__).parent
FOLDER = f"{PACKAGE}{os.sep}"
REUSE_FOLDER = PACKAGE / "engine" / "equivalence"
TUNED_FOLDERS = ("engine", "index", "plugins")
# A constant with one of these in its name is a limit, a threshold or a price that was chosen.
TUNING_WORDS = frozenset(
    ("MAX", "MIN", "FEW", "SHARE", "PER", "OVERHEAD", "BYTES", "SPARE", "AHEAD", "MARGIN", "EARLY")
)
# The pod that is traced: by then, everything that is kept for pods of its kind is there.
TRACED = 25


def _modules(folder: Path) -> Iterator[ast.Module]:
    for path in sorted(folder.rglob("*.py")):
        yield ast.parse(path.read_text(encoding="utf-8"))


def _lines_of_reuse() -> int:
    files = REUSE_FOLDER.rglob("*.py")
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def _classes_of_reuse() -> int:
    return sum(
        isinstance(node, ast.ClassDef)
        for module in _modules(REUSE_FOLDER)
        for node in ast.walk(module)
    )


def _is_number(value: ast.expr | None) -> bool:
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) and _is_number(value.right)
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


def _tuning_constants() -> int:
    """Named numbers of modules that were chosen: all but codes, units and bounds of the API."""
    return sum(
        isinstance(node, ast.Assign | ast.AnnAssign)
        and _is_number(node.value)
        and all(
            isinstance(target, ast.Name) and not TUNING_WORDS.isdisjoint(target.id.split("_"))
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        )
        for folder in TUNED_FOLDERS
        for module in _modules(PACKAGE / folder)
        for node in module.body
    )


def _modules_of_run() -> int:
    """How many modules of this package `kubestow run` has loaded when it needs a server."""
    code = (
        "import sys\n"
        "from kubestow.service.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('loaded:', sum(name.startswith('kubestow.') for name in sys.modules))"
    )
    command = [sys.executable, "-c", code, "run", "--kubeconfig=missing"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout.rpartition("loaded:")[2])


@pytest.mark.parametrize(
    ("count", "limit"),
    [
        pytest.param(lambda: len(Reuse._fields), 4, id="fields-of-Reuse"),
        pytest.param(_lines_of_reuse, 2292, id="lines-of-engine/equivalence"),
        pytest.param(_classes_of_reuse, 17, id="classes-of-engine/equivalence"),
        pytest.param(_tuning_constants, 101, id="tuning-constants"),
        pytest.param(_modules_of_run, 406, id="modules-of-run"),
    ],
)
def test_a_number_does_not_rise(count: Any, limit: int) -> None:
    assert count() <= limit


class Trace:
    """Counts the calls of this package's functions in one attempt, and how deep they go.

    Functions of others are left out, as they differ from version to version.
    """

    def __init__(self, attempt: int) -> None:
        self._attempt = attempt
        self._seen = 0
        self._depth = -1
        self.call_count = 0
        self.frame_count = 0

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if event not in ("call", "return") or not frame.f_code.co_filename.startswith(FOLDER):
            return
        if frame.f_code.co_qualname == "Scheduler.schedule_one":
            self._seen += event == "call"
            self._depth = 0 if event == "call" and self._seen == self._attempt else -1
        if self._depth < 0:
            return
        self._depth += 1 if event == "call" else -1
        self.call_count += event == "call"
        self.frame_count = max(self.frame_count, self._depth)


WEB = LabelSelector(match_labels={"app": "web"})
ZONE = "topology.kubernetes.io/zone"
SPREAD = TopologySpreadConstraint(
    max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule", label_selector=WEB
)
APART = Affinity(
    pod_anti_affinity=PodAffinity(
        required=(PodAffinityTerm(topology_key="kubernetes.io/hostname", label_selector=WEB),)
    )
)


@pytest.mark.parametrize(
    ("fields", "calls_max", "frames_max"),
    [
        pytest.param({}, 104, 12, id="plain"),
        pytest.param({"spread": [SPREAD]}, 152, 17, id="zone-spread"),
        pytest.param({"affinity": APART}, 158, 12, id="anti-affinity"),
    ],
)
def test_an_attempt_takes_no_more_calls_and_frames(
    fields: dict[str, Any], calls_max: int, frames_max: int
) -> None:
    nodes = [make_node(f"n{i}", zone=f"z{i % 3}") for i in range(40)]
    pods = [make_pod(f"p{i:02}", labels={"app": "web"}, **fields) for i in range(30)]
    trace = Trace(TRACED)
    sys.setprofile(trace)
    try:
        simulate([*nodes, *pods])
    finally:
        sys.setprofile(None)
    assert trace.call_count, "no attempt was traced"
    assert trace.call_count <= calls_max
    assert trace.frame_count <= frames_max
