"""Two states of the manifests side by side: before and after a change.

The tests are those of today; the files that they name are those of each state. Pods of two runs are
compared by what made them, as pods of a workload have random names.
"""

import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from kubestow.errors import InputError
from kubestow.simulator.placement_tests.results import (
    CaseResult,
    PlacementRun,
    PodPlace,
    Status,
)

FORMAT: Final = "kubestow.dev/tests-against/v1alpha1"
_GIT_TIMEOUT_S: Final = 120


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all parts."""


class OwnerChange(_Part, frozen=True, kw_only=True):
    """The pods of a workload, or a pod of its own, in both states.

    pods, placed   how many there are, and how many have a node: before and after
    moved          how many are on another node than before
    message        why one waits that did not before
    """

    owner: str
    pods: tuple[int, int]
    placed: tuple[int, int]
    moved: int
    message: str = ""
    source: str = ""

    @property
    def waiting(self) -> tuple[int, int]:
        return self.pods[0] - self.placed[0], self.pods[1] - self.placed[1]


class PoolChange(_Part, frozen=True, kw_only=True):
    """A node pool in both states; numbers as of `PoolState`."""

    pool: str
    nodes: tuple[int, int]
    used: tuple[int, int]
    copies: tuple[int, int]


class CaseChange(_Part, frozen=True, kw_only=True):
    """One case in both states; `note` says why one of them is missing.

    status   None before, if the case or what it applies was not there
    missing  what the case applies and the other state does not have
    needed   nodes that are missing for the pods that wait; None if none would help
    """

    name: str
    file: str
    status: tuple[Status | None, Status | None]
    owners: tuple[OwnerChange, ...] = ()
    pools: tuple[PoolChange, ...] = ()
    needed: tuple[int | None, int | None] = (0, 0)
    for_each: tuple[str, str] = ("", "")
    missing: tuple[str, ...] = ()
    note: str = ""

    @property
    def is_changed(self) -> bool:
        return bool(self.owners) or self.status[0] != self.status[1] or self.is_room_changed

    @property
    def is_room_changed(self) -> bool:
        return any(
            pool.used[0] != pool.used[1] or pool.copies[0] != pool.copies[1] for pool in self.pools
        )


class StateComparison(_Part, frozen=True, kw_only=True):
    """All cases; `before` is what the other state was called."""

    format: str = FORMAT
    before: str
    cases: tuple[CaseChange, ...]


# What cases apply and the other state does not have, by file and name of the case.
Missing = Mapping[tuple[str, str], tuple[str, ...]]


def compare_runs(
    name: str, before: PlacementRun, after: PlacementRun, missing: Missing | None = None
) -> StateComparison:
    """The cases of the second run, compared with those of the same name."""
    known = {(case.file, case.name): case for case in before.cases}
    changes: list[CaseChange] = []
    for case in after.cases:
        key = case.file, case.name
        changes.append(_compared(known.get(key), case, name, (missing or {}).get(key, ())))
    return StateComparison(before=name, cases=tuple(changes))


def _compared(
    before: CaseResult | None, after: CaseResult, name: str, missing: tuple[str, ...]
) -> CaseChange:
    statuses = (None if before is None or missing else before.status, after.status)
    if before is None or before.error or after.error:
        note = f"not in {name}" if before is None else before.error or after.error
        return CaseChange(name=after.name, file=after.file, status=statuses, note=note)
    return CaseChange(
        name=after.name,
        file=after.file,
        status=statuses,
        owners=tuple(_owners(before.pods, after.pods)),
        pools=tuple(_pools(before, after)),
        needed=(_needed(before), _needed(after)),
        for_each=("" if missing else _summary(before), _summary(after)),
        missing=missing,
    )


def _owners(before: Sequence[PodPlace], after: Sequence[PodPlace]) -> list[OwnerChange]:
    """What has changed, that which no longer fits first."""
    old, new = _by_owner(before), _by_owner(after)
    changes = [
        change
        for owner in dict.fromkeys((*old, *new))
        if (change := _owner(owner, old.get(owner, []), new.get(owner, []))) is not None
    ]
    return sorted(changes, key=lambda each: (each.waiting[0] - each.waiting[1], each.owner))


def _owner(owner: str, old: Sequence[PodPlace], new: Sequence[PodPlace]) -> OwnerChange | None:
    nodes = Counter(pod.node for pod in old if pod.node), Counter(p.node for p in new if p.node)
    stayed = (nodes[0] & nodes[1]).total()
    placed = nodes[0].total(), nodes[1].total()
    moved = min(placed) - stayed
    if moved == 0 and placed[0] == placed[1] and len(old) == len(new):
        return None
    message = ""
    if len(new) - placed[1] > len(old) - placed[0]:
        message = next(pod.message for pod in new if not pod.node)
    source = next((pod.source for pod in (*new, *old) if pod.source), "")
    return OwnerChange(
        owner=owner,
        pods=(len(old), len(new)),
        placed=placed,
        moved=moved,
        message=message,
        source=source,
    )


def _by_owner(pods: Iterable[PodPlace]) -> dict[str, list[PodPlace]]:
    found: dict[str, list[PodPlace]] = {}
    for pod in pods:
        namespace = pod.pod.partition("/")[0]
        owner = f"{namespace}/{pod.owner}" if pod.owner else pod.pod
        found.setdefault(owner, []).append(pod)
    return found


def _pools(before: CaseResult, after: CaseResult) -> list[PoolChange]:
    if before.room is None or after.room is None:
        return []
    old = {pool.pool: pool for pool in before.room.pools}
    new = {pool.pool: pool for pool in after.room.pools}
    return [
        PoolChange(
            pool=name,
            nodes=(old[name].nodes if name in old else 0, new[name].nodes if name in new else 0),
            used=(old[name].used if name in old else 0, new[name].used if name in new else 0),
            copies=(
                old[name].copies if name in old else 0,
                new[name].copies if name in new else 0,
            ),
        )
        for name in dict.fromkeys((*old, *new))
    ]


def _needed(case: CaseResult) -> int | None:
    return 0 if case.room is None else case.room.needed


def _summary(case: CaseResult) -> str:
    return "" if case.for_each is None else case.for_each.summary


# --- The other state ----------------------------------------------------------------------------


class OtherTree:
    """The files of the other state: `folder` has what `root` has now."""

    def __init__(self, name: str, root: Path, folder: Path) -> None:
        self.name: Final = name
        self._root = root
        self._folder = folder

    def shown(self, text: str) -> str:
        """A text without the folder, whose name differs from run to run."""
        return text.replace(f"{self._folder}{os.sep}", f"{self.name}:")

    def folder_of(self, test: Path) -> Path:
        """Where the other state has the files that a test names; InputError if that is outside."""
        try:
            return self._folder / test.resolve().parent.relative_to(self._root)
        except ValueError as error:
            raise InputError(
                f'"{test}" is not in "{self._root}", so it has no other state'
            ) from error


@contextmanager
def other_tree(given: str, current: Path) -> Generator[OtherTree]:
    """A folder, or a revision of git, whose files exist inside the `with` block.

    A folder takes the place of the current one, a revision that of the repository. InputError if it
    is neither.
    """
    if Path(given).is_dir():
        yield OtherTree(given, current.resolve(), Path(given))
        return
    root = Path(_git(["rev-parse", "--show-toplevel"], current, given))
    revision = f"{given}^{{commit}}"
    commit = _git(["rev-parse", "--verify", "--end-of-options", revision], current, given)
    with tempfile.TemporaryDirectory(prefix="kubestow-test-") as folder:
        tree = Path(folder, "tree")
        tree.mkdir()
        # An index of its own: an archive would leave out files with the attribute export-ignore.
        index = Path(folder, "index")
        _git(["read-tree", commit], root, given, index=index)
        _git(["checkout-index", "--all", f"--prefix={tree}{os.sep}"], root, given, index=index)
        yield OtherTree(given, root.resolve(), tree)


def _git(arguments: Sequence[str], folder: Path, given: str, *, index: Path | None = None) -> str:
    """What git prints; `index` is used in place of the one of the repository."""
    environment = dict(os.environ)
    if index is not None:
        environment["GIT_INDEX_FILE"] = str(index)
    try:
        # Fixed words and a revision after --end-of-options; no shell reads it.
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            check=False,
            timeout=_GIT_TIMEOUT_S,
        )
    except FileNotFoundError as error:
        raise InputError(
            f'--against: there is no folder "{given}", and git is not found to look for a revision'
        ) from error
    except subprocess.TimeoutExpired as error:
        raise InputError(f"--against: git did not end within {_GIT_TIMEOUT_S} s") from error
    if done.returncode:
        text = " ".join(done.stderr.decode(errors="replace").split())
        raise InputError(f'--against: "{given}" is neither a folder nor a revision of git: {text}')
    return done.stdout.decode().strip()


def pair_text(numbers: tuple[int, int]) -> str:
    """A number before and after; one, if it is the same."""
    before, after = numbers
    return str(after) if before == after else f"{before} → {after}"
