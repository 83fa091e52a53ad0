"""Two states of the manifests side by side, from folders and from revisions of git."""

import subprocess
from pathlib import Path

import pytest

from kubestow.errors import InputError
from kubestow.simulator.placement_tests.against import StateComparison, compare_runs, other_tree
from kubestow.simulator.placement_tests.reading import read_test
from kubestow.simulator.placement_tests.reports.markdown import markdown_text
from kubestow.simulator.placement_tests.running import RunOptions, run_cases

TEST = """\
cluster: {nodes: [{name: n, count: 3, capacity: {cpu: 4}}]}
given: [{apply: ../web.yaml}]
expect: [{placed: all}]
"""
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: a, image: a, resources: {requests: {cpu: %s}}}]
"""
OPTIONS = RunOptions(jobs=1, keeps_pods=True)


def compared(test: Path, given: str, current: Path) -> StateComparison:
    with other_tree(given, current) as other:
        before = run_cases(read_test(test, folder=other.folder_of(test)), OPTIONS)
        after = run_cases(read_test(test), OPTIONS)
    return compare_runs(given, before, after)


@pytest.fixture
def after(tmp_path: Path) -> Path:
    folder = tmp_path / "after"
    (folder / "checks").mkdir(parents=True)
    (folder / "checks" / "t.placement.yaml").write_text(TEST)
    (folder / "web.yaml").write_text(WEB % (5, "3"))
    return folder


def test_what_no_longer_fits_and_how_much_room_is_left(tmp_path: Path, after: Path) -> None:
    before = tmp_path / "before"
    (before / "checks").mkdir(parents=True)
    (before / "web.yaml").write_text(WEB % (3, "1"))
    comparison = compared(after / "checks" / "t.placement.yaml", str(before), after)
    (case,) = comparison.cases
    assert case.status == ("passed", "failed")
    (owner,) = case.owners
    assert owner.owner == "default/Deployment/web"
    assert (owner.pods, owner.placed, owner.waiting) == ((3, 5), (3, 3), (0, 2))
    assert "Insufficient cpu" in owner.message
    assert owner.source.endswith("web.yaml#1")
    (pool,) = case.pools
    assert (pool.nodes, pool.copies) == ((3, 3), (9, 3))
    assert case.needed == (0, 2)
    text = markdown_text(run_cases([], OPTIONS), comparison)
    assert "✅ → ❌" in text
    assert "2 no longer fit" in text
    assert "Nodes needed besides: 0 → 2" in text


def commit_all(folder: Path) -> None:
    """Make the folder a repository, and what is there a revision of it."""
    options = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "first")):
        subprocess.run(["git", *options, *words], cwd=folder, check=True, capture_output=True)


def test_a_revision_of_git_is_another_state(after: Path) -> None:
    (after / "web.yaml").write_text(WEB % (3, "1"))
    # Links that lead elsewhere, and files that no archive has.
    (after / "absolute").symlink_to("/nowhere")
    (after / "outside").symlink_to("../../nowhere")
    (after / ".gitattributes").write_text("web.yaml export-ignore\n")
    commit_all(after)
    (after / "web.yaml").write_text(WEB % (5, "3"))
    comparison = compared(after / "checks" / "t.placement.yaml", "HEAD", after)
    assert comparison.cases[0].status == ("passed", "failed")
    with pytest.raises(InputError, match=r'"none" is neither a folder nor a revision of git'):
        compared(after / "checks" / "t.placement.yaml", "none", after)


def test_equal_states_have_no_change(tmp_path: Path, after: Path) -> None:
    comparison = compared(after / "checks" / "t.placement.yaml", str(after), after)
    assert not comparison.cases[0].is_changed
    assert "No pod is placed elsewhere" in markdown_text(run_cases([], OPTIONS), comparison)


def test_what_was_added_since_is_new(tmp_path: Path, after: Path) -> None:
    before = tmp_path / "before"
    (before / "checks").mkdir(parents=True)
    test = after / "checks" / "t.placement.yaml"
    with other_tree(str(before), after) as other:
        (case_before,) = read_test(test, folder=other.folder_of(test))
        run_before = run_cases([case_before], OPTIONS)
    assert case_before.missing == ("../web.yaml",)
    run_after = run_cases(read_test(test), OPTIONS)
    missing = {(case_before.file, case_before.name): case_before.missing}
    comparison = compare_runs("before", run_before, run_after, missing)
    (case,) = comparison.cases
    assert case.status == (None, "failed")
    (owner,) = case.owners
    assert (owner.pods, owner.placed) == ((0, 5), (0, 3))
    assert case.pools[0].copies == (12, 3)
    assert "(new: ../web.yaml)" in markdown_text(run_after, comparison)


def test_a_missing_file_of_this_state_is_a_mistake(after: Path) -> None:
    (after / "web.yaml").unlink()
    with pytest.raises(InputError, match="cannot read"):
        read_test(after / "checks" / "t.placement.yaml")


def test_an_error_of_the_other_state_has_no_name_of_a_temporary_folder(
    tmp_path: Path, after: Path
) -> None:
    with other_tree(str(tmp_path), after) as other:
        assert other.shown(f'cannot read "{tmp_path}/a.yaml"') == f'cannot read "{tmp_path}:a.yaml"'


def test_a_test_outside_of_the_folder_has_no_other_state(tmp_path: Path, after: Path) -> None:
    (tmp_path / "other").mkdir()
    with pytest.raises(InputError, match="has no other state"):
        compared(after / "checks" / "t.placement.yaml", str(after), tmp_path / "other")
