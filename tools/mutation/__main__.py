"""Runs a sample: `python -m tools.mutation --sample 200 --seed 1`.

The same seed and the same sources give the same changes. Survivors are printed with their
difference, and written to `.mutation/seed-1.md`. Ends with 1 if too many survive. Run it in the
repository: it reads the tests.
"""

import argparse
import difflib
import sys
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tools.mutation.copies import copied_tree
from tools.mutation.reach import load_reach
from tools.mutation.sites import PACKAGE, Site, compiles, sites_of
from tools.mutation.trial import STAGE_LIMIT_S, Trial, TrialRunner

PACKAGES: Final = ("api", "queue", "cache", "engine", "framework", "plugins", "cel", "index")
FOUND_SHARE_MIN: Final = 0.9
FOLDER: Final = ".mutation"  # what is kept of the tests, and the lists of survivors
EQUIVALENT: Final = Path(__file__).with_name("equivalent.toml")


def main() -> int:
    arguments = _parser().parse_args()
    root = Path.cwd()
    folder = root / FOLDER
    folder.mkdir(exist_ok=True)
    console = Console(stderr=True)
    packages = tuple(arguments.packages.split(","))
    sample = list(_sample(root, packages, arguments.sample, arguments.seed))
    with _progress(console) as progress:
        task = progress.add_task("", total=len(sample))
        reach = load_reach(
            root,
            PACKAGES,
            folder / "reach.json",
            lambda text: progress.update(task, description=text),
        )
        trials: list[Trial] = []
        # Ended by hand, it reports what there is.
        with copied_tree(root) as copy, TrialRunner(copy) as bench, suppress(KeyboardInterrupt):
            bench.check(reach)
            for site in sample:
                progress.update(task, description=f"{site.path}:{site.line}")
                trials.append(bench.run_trial(site, reach, arguments.limit))
                progress.advance(task)
                if not trials[-1].found_by:
                    console.print(difference(root, site), markup=False, highlight=False)
    return _report(root, folder / f"seed-{arguments.seed}.md", trials)


def _sample(root: Path, packages: tuple[str, ...], size: int, seed: int) -> Iterator[Site]:
    sites = sites_of(root, packages)
    sources: dict[str, bytes] = {}
    order: list[int] = np.random.default_rng(seed).permutation(len(sites)).tolist()
    for site in map(sites.__getitem__, order):
        if size == 0:
            return
        source = sources.setdefault(site.path, (root / site.path).read_bytes())
        if compiles(site.applied(source)):
            size -= 1
            yield site


def difference(root: Path, site: Site) -> str:
    """The change, as a difference of two lines with what is around them."""
    source = (root / site.path).read_bytes()
    before, after = (text.decode().splitlines() for text in (source, site.applied(source)))
    lines = difflib.unified_diff(before, after, site.path, site.path, lineterm="", n=2)
    return "\n".join(lines)


def _report(root: Path, path: Path, trials: list[Trial]) -> int:
    reasons = _equivalent()
    survivors = {trial: difference(root, trial.site) for trial in trials if not trial.found_by}
    explained = {trial: reasons.get(key_of(text)) for trial, text in survivors.items()}
    unexplained = [trial for trial, reason in explained.items() if reason is None]
    path.write_text("\n".join(_page(trials, survivors, explained)), encoding="utf-8")
    differing = len(trials) - len(survivors) + len(unexplained)
    found = len(trials) - len(survivors)
    print(
        f"{len(trials)} changes: {found} found, {len(survivors) - len(unexplained)} equivalent, "
        f"{len(unexplained)} survive; {found / max(differing, 1):.1%} found; see {path}"
    )
    return 0 if found >= FOUND_SHARE_MIN * differing else 1


def _page(
    trials: Iterable[Trial], survivors: dict[Trial, str], explained: dict[Trial, str | None]
) -> Iterator[str]:
    yield "# Survivors\n"
    for trial, text in survivors.items():
        reason = explained[trial] or "not explained"
        yield f"{trial.site.kind}, {trial.test_count} tests ran; {reason}"
        yield f"\n```diff\n{text}\n```\n"
    yield "# Found\n"
    for trial in trials:
        if trial.found_by:
            yield f"- {trial.site.path}:{trial.site.line} {trial.site.kind}: {trial.found_by}"
    yield ""


def key_of(text: str) -> tuple[str, str, str]:
    """What an entry of the table of equivalent changes names: file, line before, line after."""
    lines = text.splitlines()
    before = [line[1:].strip() for line in lines[2:] if line.startswith("-")]
    after = [line[1:].strip() for line in lines[2:] if line.startswith("+")]
    return lines[0].split()[1].removeprefix(f"{PACKAGE}/"), " ".join(before), " ".join(after)


def _equivalent() -> dict[tuple[str, str, str], str]:
    table = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))
    return {
        (entry["file"], entry["line"], entry["becomes"]): entry["why"]
        for entry in table.get("equivalent", ())
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutation",
        description="Changes single operators and runs the tests that could notice.",
    )
    parser.add_argument("--sample", type=int, default=200, help="how many changes (200)")
    parser.add_argument("--seed", type=int, default=1, help="another one gives other changes (1)")
    parser.add_argument(
        "--packages", default=",".join(PACKAGES), help=f"which are changed ({','.join(PACKAGES)})"
    )
    parser.add_argument(
        "--limit", type=float, default=STAGE_LIMIT_S, help="seconds of tests of each step (60)"
    )
    return parser


def _progress(console: Console) -> Progress:
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(TextColumn("{task.description}"), *columns, console=console)


if __name__ == "__main__":
    sys.exit(main())
