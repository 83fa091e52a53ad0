"""Which tests are near a change, in a small repository and in this one."""

import subprocess
from pathlib import Path

import pytest

from tools import near
from tools.near import NearTests, changed_files, module_name, near_tests

ROOT = Path(__file__).parents[2]
FILES = {
    "src/kubestow/queue/heap.py": "",
    "src/kubestow/queue/queue.py": "from kubestow.queue import heap\n",
    "src/kubestow/engine/scheduler.py": "from kubestow.queue.queue import Queue\n",
    "src/kubestow/clock.py": "",
    "docs/guides/run.md": "",
    "tests/queue/test_heap.py": "from kubestow.queue.heap import Heap\n",
    "tests/queue/test_order.py": "",
    "tests/queue/deep/test_deep.py": "",
    "tests/engine/test_scheduler.py": "",
    "tests/engine/test_rounds.py": "def test():\n    from kubestow.queue import heap, queue\n",
    "tests/docs/test_pages.py": "",
    "tests/e2e/test_cluster.py": "from kubestow.queue.heap import Heap\n",
    "tests/test_clock.py": "from kubestow.clock import Clock\n",
}


def git(folder: Path, *arguments: str) -> None:
    names = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", *names, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_the_folder_of_a_source_and_what_imports_it_is_near(repository: Path) -> None:
    files = near_tests(repository, ["src/kubestow/queue/heap.py"]).files
    # The mirrored folder, then a test that imports it. No test of `queue.py` is elsewhere.
    assert files == [
        "tests/queue/test_heap.py",
        "tests/queue/test_order.py",
        "tests/engine/test_rounds.py",
    ]


def test_the_test_of_a_module_that_imports_the_changed_one_is_near(repository: Path) -> None:
    files = near_tests(repository, ["src/kubestow/queue/queue.py"]).files
    assert files[-2:] == ["tests/engine/test_rounds.py", "tests/engine/test_scheduler.py"]


@pytest.mark.parametrize(
    ("changed", "files"),
    [
        pytest.param("tests/queue/test_order.py", ["tests/queue/test_order.py"], id="a-test"),
        pytest.param("tests/queue/test_gone.py", [], id="a-deleted-test"),
        pytest.param("docs/guides/run.md", ["tests/docs/test_pages.py"], id="a-folder-above"),
        pytest.param("src/kubestow/clock.py", ["tests/test_clock.py"], id="the-top"),
        pytest.param("pyproject.toml", ["tests/test_clock.py"], id="a-file-beside-src"),
    ],
)
def test_other_changes(repository: Path, changed: str, files: list[str]) -> None:
    assert near_tests(repository, [changed]) == NearTests(files, 0)


def test_what_is_near_by_imports_alone_is_limited_and_counted(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near, "FURTHER_MAX", 1)
    found = near_tests(repository, ["src/kubestow/queue/queue.py"])
    assert found.files[-1] == "tests/engine/test_rounds.py"
    assert found.left_out_count == 1


def test_a_change_is_all_that_differs_from_where_the_branch_began(repository: Path) -> None:
    git(repository, "init", "-b", "main")
    git(repository, "add", ".")
    git(repository, "commit", "-m", "all")
    git(repository, "checkout", "-b", "mine")
    (repository / "src/kubestow/clock.py").write_text("committed = 1\n")
    git(repository, "commit", "-a", "-m", "mine")
    git(repository, "checkout", "main")
    (repository / "docs/guides/run.md").write_text("of others\n")
    git(repository, "commit", "-a", "-m", "others")
    git(repository, "checkout", "mine")
    (repository / "src/kubestow/queue/heap.py").unlink()
    (repository / "src/kubestow/queue/new.py").write_text("untracked = 1\n")
    assert changed_files(repository, "main") == [
        "src/kubestow/clock.py",
        "src/kubestow/queue/heap.py",
        "src/kubestow/queue/new.py",
    ]
    with pytest.raises(subprocess.CalledProcessError):
        changed_files(repository, "nowhere")


def test_modules_have_the_names_they_are_imported_by() -> None:
    assert module_name("src/kubestow/queue/__init__.py") == "kubestow.queue"
    assert module_name("tools/near.py") == "tools.near"
    assert module_name("docs/scripts/pages.py") == ""


def test_in_this_repository_a_plugin_is_tested_by_itself_and_its_neighbours() -> None:
    found = near_tests(ROOT, ["src/kubestow/plugins/node_ports.py"])
    assert {"tests/plugins/test_node_ports.py", "tests/test_layout.py"} <= {*found.files}
    assert len(found.files) < 60
