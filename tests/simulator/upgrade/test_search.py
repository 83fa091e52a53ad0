"""What is not searched is named."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kubestow.editions.v1_37.noticed import NOTICED_V137
from kubestow.errors import InputError
from kubestow.simulator.upgrade.search import search_files

METRIC = "scheduler_resourceclaim_creates_total"


def test_a_folder_that_cannot_be_read_is_named_and_the_rest_is_searched(
    tmp_path: Path, closed: Callable[[Path], None]
) -> None:
    for name in (".git", "alerts", "closed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rules.yaml").write_text(METRIC)
    closed(tmp_path / "closed")
    searched = search_files([tmp_path], NOTICED_V137, is_back=False)
    assert searched.searched == 1
    assert [found.where for found in searched.findings] == [f"{tmp_path}/alerts/rules.yaml:1"]
    assert searched.left_out == (f"{tmp_path}/closed: Permission denied",)


@pytest.mark.parametrize("name", ["gone", "a" * 300])
def test_a_file_that_does_not_exist_is_an_error(name: str) -> None:
    with pytest.raises(InputError, match="--search: there is no file or folder"):
        search_files([Path(name)], NOTICED_V137, is_back=False)


def test_an_empty_file_is_named_and_not_searched(tmp_path: Path) -> None:
    empty, other = tmp_path / "watched.yaml", tmp_path / "other.yaml"
    empty.write_text("\n")
    other.write_text("nothing")
    searched = search_files([empty, other], NOTICED_V137, is_back=False)
    assert searched.searched == 1
    assert searched.left_out == (f"{empty}: it is empty",)


def test_a_search_without_any_file_is_reported(tmp_path: Path) -> None:
    searched = search_files([tmp_path], NOTICED_V137, is_back=False)
    assert searched.left_out == ("no file with text was found to search",)
    assert search_files([], NOTICED_V137, is_back=False).left_out == ()
