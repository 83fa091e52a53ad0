"""Which edition a server gets, and what a saved cluster remembers."""

from pathlib import Path

import pytest

from kubestow.api.files import Document
from kubestow.editions import edition_named, edition_of_server
from kubestow.simulator.input.saving import save_input, saved_version


@pytest.mark.parametrize(
    ("server", "version", "is_another"),
    [
        pytest.param("v1.36.4", "v1.36", False, id="v1.36"),
        pytest.param("v1.37.0-rc.1", "v1.37", False, id="candidate"),
        pytest.param("v1.37.0+kubestow.1", "v1.37", False, id="embedded"),
        pytest.param("v1.33.2", "v1.36", True, id="older"),
        pytest.param("v1.41.0", "v1.37", True, id="newer"),
        pytest.param("", "v1.37", True, id="silent"),
        pytest.param("openshift", "v1.37", True, id="odd"),
    ],
)
def test_the_edition_is_that_of_the_minor_version(
    server: str, version: str, is_another: bool
) -> None:
    edition, note = edition_of_server(server)
    assert edition is edition_named(version)
    assert bool(note) is is_another


@pytest.mark.parametrize("name", ["cluster.json", "cluster.yaml", "folder"])
def test_a_saved_cluster_remembers_its_version(tmp_path: Path, name: str) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    path = tmp_path / name
    save_input([Document(node, "n")], path, server_version="v1.36.4")
    assert saved_version([str(tmp_path / "missing.yaml"), str(path)]) == "v1.36.4"


def test_files_of_users_have_no_version(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("kind: Pod\n")
    assert saved_version([str(path), "-"]) == ""
