"""The table of changes that no test can notice is up to date."""

import tomllib
from pathlib import Path

import pytest

from tools.mutation.__main__ import EQUIVALENT, difference, key_of
from tools.mutation.sites import PACKAGE, Site, sites_in

ROOT = Path(__file__).parents[3]
ENTRIES = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["equivalent"]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry['file']}: {entry['becomes']}")
def test_entries_are_changes_that_can_be_made(entry: dict[str, str]) -> None:
    path = f"{PACKAGE}/{entry['file']}"
    sites: list[Site] = sites_in(path, (ROOT / path).read_bytes())
    keys = {key_of(difference(ROOT, site)) for site in sites}
    assert (entry["file"], entry["line"], entry["becomes"]) in keys, "its line changed: delete it"
